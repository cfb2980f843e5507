// The list of all runs.

import { ask } from "../common/server.js";
import { address, announce, count, make } from "../common/dom.js";
import { leave, showThread } from "./conversation.js";
import { when } from "./run.js";

const STATUS = { idle: "ended", busy: "running", interrupted: "waits for you", error: "error", unfinished: "not ended" };

export async function showRuns(view, given, overview) {
  leave();
  if (!overview.runs) {
    view.replaceChildren(make("section", { class: "wide" }, make("h1", { text: "Runs" }),
      make("p", { text: "Past runs are shown by the page that the LangGraph server serves." })));
    return;
  }
  const id = given.get("id");
  if (id !== null) { await showThread(view, id, overview); return; }
  const threads = await ask("runs");
  const row = (one) => make("li", {}, make("a", { href: address("runs", { id: one.id }) },
    make("span", { class: "thread-text", text: one.request || one.id }),
    make("span", { class: `badge ${one.status}`, text: STATUS[one.status] ?? one.status }),
    make("span", { class: "small", text: when(one.at) })));
  view.replaceChildren(make("section", { class: "runs" }, make("h1", { text: "Runs" }),
    threads.length ? make("ul", { class: "threads" }, threads.map(row)) : make("p", { text: "There are none yet." })));
  announce(count(threads.length, "run"));
}
