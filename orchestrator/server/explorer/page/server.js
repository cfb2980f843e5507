// What the page asks the server, and who it says it is.

import { alert } from "./dom.js";

/** The bearer token of a signed-in user in `sessionStorage`, until the tab is closed. */
export const TOKEN = "callsheet-token";
const KEY = "callsheet-key", asking = new Map();

/** The server wants to know who asks. */
export class SignIn extends Error {}

/** Somebody asked something else in the meantime. */
export class Overtaken extends Error {}

const SILENT = "The server does not answer: is it still running? What is shown is the last that it said";

/** Waits for the server; where the browser has no more than "network error", says what that means. */
const heard = (waiting) => waiting.catch((error) => { throw error instanceof TypeError ? new Error(SILENT) : error; });

/** Shows an error; one of a question that was overtaken is none. */
export function failed(error) {
  if (!(error instanceof Overtaken)) alert(`${error.message}.`.replace(/\.\.$/, "."));
}

/** Asks for one thing; a later question in the same slot takes the place of an earlier one. */
export async function ask(name, given = {}, slot = name) {
  asking.get(slot)?.abort();
  const mine = new AbortController();
  asking.set(slot, mine);
  try {
    const answer = await heard(fetch(`api/${name}?${new URLSearchParams(given)}`, { headers: headers(), signal: mine.signal }));
    const body = await read(answer);
    if (mine.signal.aborted) throw new Overtaken();
    return body;
  } catch (error) {
    throw mine.signal.aborted ? new Overtaken() : error;
  }
}

/** JSON as a person or the server wrote it, which is sent unchanged: JavaScript would round its numbers. */
export class Exact {
  constructor(text) { this.text = text; }
}

/** A value as JSON; what is in it as text of JSON already stays as it is. */
export function written(value) {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).filter(([, of]) => of !== undefined).map(([name, of]) => `${JSON.stringify(name)}:${written(of)}`).join(",")}}`;
}

/** Has something done: starts, answers, stops. */
export async function send(name, given) {
  const more = { ...headers(), "Content-Type": "application/json" };
  return read(await heard(fetch(`api/${name}`, { method: "POST", headers: more, body: written(given) })));
}

/** Follows a run: calls `take` with each of its events, until it ends, waits, or `signal` says stop. */
export async function watch(thread, take, signal) {
  const answer = await heard(fetch(`api/watch?${new URLSearchParams({ id: thread })}`, { headers: headers(), signal }));
  if (!answer.ok) await read(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await heard(reader.read());
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) take(JSON.parse(event.slice("data: ".length)));
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
  const token = sessionStorage.getItem(TOKEN);
  return { "X-Callsheet-Key": localStorage.getItem(KEY) ?? "page", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
}

/** Stores the key of the address that the command line printed, for all tabs of this address, and takes it out of it. */
export function storeKey() {
  const [, key] = location.hash.match(/^#key=([\w-]+)/) ?? [];
  if (!key) return;
  localStorage.setItem(KEY, key);
  history.replaceState(null, "", "#/");
}
