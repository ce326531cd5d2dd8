import { expect, test } from "vitest";
import { elbow, FLOW_ROW, flowHeight, rowMiddle } from "./flow";

test("a level line is straight, another turns at the trunk and ends level", () => {
  expect(elbow(0, 10, 20, 40, 10)).toBe("M0 10H40");
  expect(elbow(0, 0, 20, 40, 30)).toBe("M0 0H12Q20 0 20 8V22Q20 30 28 30H40");
  expect(elbow(0, 30, 20, 40, 20)).toBe("M0 30H15Q20 30 20 25V25Q20 20 25 20H40");
});
test("a shorter column stands in the middle of the taller one", () => {
  const height = flowHeight(4, 1);
  expect(rowMiddle(0, 1, height)).toBe(height / 2);
  expect(rowMiddle(1, 4, height) - rowMiddle(0, 4, height)).toBe(FLOW_ROW);
});
