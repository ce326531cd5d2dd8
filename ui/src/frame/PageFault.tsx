// A page that broke: say what broke, offer it again; the frame around it goes on.

import { type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import { problemFrom } from "../api/client";
import { Fault } from "../parts/Region";
import { PageHead } from "./PageHead";

export function PageFault({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const problem = problemFrom(error);
  return (
    <>
      <PageHead title="This page broke" />
      <Fault
        problem={{ ...problem, next: problem.next ?? "Its data is untouched; other pages go on." }}
        retry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </>
  );
}
