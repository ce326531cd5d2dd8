import { Link } from "@tanstack/react-router";
import { PageHead } from "./PageHead";

export function NotFound() {
  return (
    <div className="pad">
      <PageHead title="No such page" />
      <p>
        Nothing is at <span className="mono">{location.pathname}</span>.{" "}
        <Link to="/" className="link">
          Overview
        </Link>
      </p>
    </div>
  );
}
