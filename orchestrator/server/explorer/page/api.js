// What the page asks the server, and who it says it is.

const KEY = "callsheet-token";
const asking = new Map();

/** The server wants to know who asks. */
export class SignIn extends Error {}

/** Somebody asked something else in the meantime. */
export class Overtaken extends Error {}

/** Asks for one thing; a later question in the same slot takes the place of an earlier one. */
export async function ask(name, given = {}, slot = name) {
  asking.get(slot)?.abort();
  const mine = new AbortController();
  asking.set(slot, mine);
  try {
    const answer = await fetch(`api/${name}?${new URLSearchParams(given)}`, { headers: headers(), signal: mine.signal });
    const body = await read(answer);
    if (mine.signal.aborted) throw new Overtaken();
    return body;
  } catch (error) {
    throw mine.signal.aborted ? new Overtaken() : error;
  }
}

async function read(answer) {
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const why = body?.error ?? body?.detail ?? `The server answered ${answer.status} ${answer.statusText}`;
  if (answer.status === 401 || (answer.status === 403 && !body?.error)) throw new SignIn(why);
  throw new Error(why);
}

function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Keeps a token until the tab is closed. */
export function keep(token) {
  sessionStorage.setItem(KEY, token);
}

/** Forgets the token. */
export function forget() {
  sessionStorage.removeItem(KEY);
}

/** Whether a token is kept. */
export function kept() {
  return sessionStorage.getItem(KEY) !== null;
}
