// Requests to the service, with the token of this tab where one is needed.

const KEY = "ripplevec-token";

/** The service said no: `status` is its code, the message its reason. */
export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/** What the service answers to a question. */
export async function ask(path, values = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined));
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`${path}?${query}`, { headers, cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.error ?? `the service answered ${answer.status}`);
  return body;
}

/** Keep a token for as long as the tab is open. */
export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

/** How an address names this id: 1 and "1" are different vertices. */
export function named(id) {
  return { id: String(id), kind: typeof id === "number" ? "integer" : "auto" };
}
