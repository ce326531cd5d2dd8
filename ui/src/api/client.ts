// Requests to /api/v1. A refusal arrives as a problem document and is thrown as one, so that every view can say what to do next.

import type { Problem } from "./types";

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ApiError";
  }
}

type Params = Record<string, string | number | boolean | null | undefined>;

export function apiPath(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params))
    if (value !== undefined && value !== null && value !== "") query.set(key, String(value));
  const text = query.toString();
  return `/api/v1/${path}${text ? `?${text}` : ""}`;
}

/** A name as one path segment: the space `/` is `%2F`. */
export const segment = encodeURIComponent;

async function problemOf(response: Response): Promise<Problem> {
  const fallback: Problem = {
    type: "about:blank",
    title: response.statusText || `Status ${response.status}`,
    status: response.status,
    detail: `${new URL(response.url).pathname} answered ${response.status}.`,
  };
  try {
    return { ...fallback, ...((await response.json()) as Partial<Problem>) };
  } catch {
    return fallback;
  }
}

async function request(method: string, path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, method, headers: { accept: "application/json", ...init.headers } });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({
      type: "about:blank",
      title: "No answer",
      status: 0,
      detail: "reactor did not answer on the control port.",
      next: "Check that it runs; this page reconnects by itself.",
    });
  }
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

export async function get<T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> {
  const response = await request("GET", apiPath(path, params), signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function send<T = unknown>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
): Promise<T | null> {
  const init =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await request(method, apiPath(path), init);
  const text = await response.text();
  return text ? (JSON.parse(text) as T) : null;
}

export const problemFrom = (error: unknown): Problem =>
  error instanceof ApiError
    ? error.problem
    : {
        type: "about:blank",
        title: "Fault",
        status: 0,
        detail: error instanceof Error ? error.message : String(error),
      };
