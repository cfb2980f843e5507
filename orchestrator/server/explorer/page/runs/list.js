// The list of all runs.

import { ask } from "../common/server.js";
import { address, announce, count, make } from "../common/dom.js";
import { showBoth } from "./compare.js";
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
  if (given.has("a") && given.has("b")) { await showBoth(view, [given.get("a"), given.get("b")]); return; }
  const threads = await ask("runs"), chosen = new Set();
  const compare = make("button", { type: "button", text: "Compare two", disabled: "", title: "Choose two runs", on: { click: () => { const [a, b] = chosen; location.hash = address("runs", { a, b }); } } });
  const choose = (id, box) => {
    if (box.checked) chosen.add(id); else chosen.delete(id);
    compare.disabled = chosen.size !== 2;
  };
  const several = threads.some((one) => one.source);
  view.replaceChildren(make("section", { class: "runs" }, make("div", { class: "run-title" }, make("h1", { text: "Runs" }), threads.length > 1 && compare),
    threads.length ? make("ul", { class: "threads" }, threads.map((one) => (one.status === "note" ? note(one) : thread(one, choose, several)))) : make("p", { text: "There are none yet." })));
  announce(count(threads.filter((one) => one.status !== "note").length, "run"));
}

function note(one) {
  return make("li", {}, make("p", { class: "small words", text: `${one.source}: ${one.request}` }));
}

function thread(one, choose, several) {
  const box = make("input", { type: "checkbox", "aria-label": `Compare: ${one.request || one.id}`, on: { change: () => choose(one.id, box) } });
  return make("li", {}, box, make("a", { href: address("runs", { id: one.id }) },
    make("span", { class: "thread-text", text: one.request || one.id }),
    make("span", { class: `badge ${one.status}`, text: one.source && one.status === "interrupted" ? "waits" : STATUS[one.status] ?? one.status }),
    make("span", { class: "small" }, several && make("span", { class: "from", text: one.source || "this page" }), when(one.at))));
}
