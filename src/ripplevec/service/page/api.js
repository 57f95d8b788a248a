// Requests to the service, with the access token of this tab if one is set.

const TOKEN_KEY = "ripplevec-token";

/** An error response of the service: `status` is the HTTP status, the message is the reason. */
export class RequestError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/** Return the header with the access token of this tab; none if it has no token. */
export function authorization() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Send a GET request and return the parsed JSON response. */
export async function getJson(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined));
  const response = await fetch(`${path}?${query}`, { headers: authorization(), cache: "no-store" });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new RequestError(response.status, body.error ?? `the service answered ${response.status}`);
  return body;
}

/** Store the access token until the tab is closed. */
export function storeToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

/** Query parameters for an id: 1 and "1" are different vertices. */
export function idParameters(id) {
  return { id: String(id), kind: typeof id === "number" ? "integer" : "auto" };
}
