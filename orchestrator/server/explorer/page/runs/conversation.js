// A thread: its requests from the first to the last, the last one as it goes, and the next one.

import { Overtaken, ask, send, watch } from "../common/server.js";
import { address, alert, announce, count, fold, make } from "../common/dom.js";
import { exports } from "./export.js";
import { beside } from "./beside.js";
import { article } from "./run.js";

let following = null;

/** Starts a request in a new thread, and goes there. */
export async function begin(text) {
  const { thread } = await send("start", { text });
  location.hash = address("runs", { id: thread });
}

/** Stops following a run: another view is shown. */
export function leave() {
  following?.abort();
  following = null;
}

/** Shows the thread of this id. */
export async function showThread(view, id, overview) {
  leave();
  const mine = (following = new AbortController());
  const live = article({ decide: overview.asks ? (answers) => change("resume", { thread: id, answers }) : null, cancel: overview.asks ? () => change("cancel", { thread: id }) : null, resume: overview.asks ? () => change("resume", { thread: id, answers: {} }) : null });
  const earlier = make("div", { class: "earlier" });
  const next = overview.asks ? composer("Ask a follow-up question", (text) => change("start", { text, thread: id })) : null;
  const tools = make("div", { class: "row exports" }), ground = beside();
  view.replaceChildren(make("div", { class: "thread" }, make("p", { class: "back" }, make("a", { href: address("runs"), text: "All runs" })), earlier, live.element, tools, next && make("div", { class: "next" }, next.element), ground.element));
  let last = null, told = 0;

  function show(run) {
    if (last?.status !== run.status) announce({ running: "Running", waiting: `${count(run.questions.length, "question")} wait${run.questions.length === 1 ? "s" : ""} for you`, done: `Done. ${run.answer}`, stopped: "Stopped" }[run.status]);
    // A new request of the conversation takes the place of the one before.
    if (last && last.status !== "running" && run.status === "running" && run.id !== last.id) earlier.append(turn(last));
    const first = last === null;
    last = run;
    told = performance.now();
    live.show(run);
    ground.show(run);
    if (first) live.element.querySelector("h2").focus();
    if (next) next.enable(run.status === "done" || (run.status === "stopped" && !run.steps.length));
    tools.replaceChildren(...exports(run, live.element));
  }

  // Between two states of the run, its clock goes on.
  const ticking = setInterval(() => { if (last?.status === "running") live.show({ ...last, seconds: (last.seconds ?? 0) + (performance.now() - told) / 1000 }); }, 250);
  mine.signal.addEventListener("abort", () => clearInterval(ticking));

  async function load() {
    const runs = await ask("run", { id });
    const [newest, ...others] = runs;
    earlier.replaceChildren(...others.reverse().map(turn));
    show(newest);
    return newest;
  }

  async function follow() {
    const live = await watch(id, show, mine.signal).catch((error) => { if (!mine.signal.aborted) throw error; });
    if (!mine.signal.aborted && live !== undefined) {
      const ended = last;
      await load();
      if (ended?.trouble && last.status === "stopped") show({ ...last, trouble: ended.trouble });
    }
  }

  async function change(name, given) {
    alert();
    try {
      await send(name, given);
      if (name === "start") next.clear();
      if (name !== "cancel") await follow();
    } catch (error) {
      if (!(error instanceof Overtaken)) alert(make("p", { text: error.message }));
    }
  }

  // A run that goes on is not in the history yet, so it is looked for first.
  if (overview.asks) follow().catch((error) => { if (!(error instanceof Overtaken)) alert(make("p", { text: error.message })); });
  else await load();
}

function turn(run) {
  const shown = article({});
  const made = fold(run.request, make("div", {}, shown.element));
  made.className = "turn";
  made.append();
  made.addEventListener("toggle", () => made.open && shown.show(run));
  return make("section", { class: "earlier-turn" }, made, run.answer && make("p", { class: "words answer-text", text: run.answer }));
}

/** A field for a request: Enter sends it, Shift and Enter begins a new line. */
export function composer(label, start) {
  const area = make("textarea", { id: "question", rows: "1", maxlength: "100000", placeholder: label, "aria-label": label });
  const button = make("button", { class: "main", text: "Ask" });
  const grow = () => { area.style.height = "auto"; area.style.height = `${Math.min(area.scrollHeight + 2, 260)}px`; };
  const go = (event) => { event.preventDefault(); if (area.value.trim() && !button.disabled) start(area.value.trim()); else area.focus(); };
  area.addEventListener("input", grow);
  area.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) go(event); });
  const form = make("form", { class: "composer", on: { submit: go } }, area, button);
  return {
    element: form,
    area,
    clear: () => { area.value = ""; grow(); },
    enable: (on) => { button.disabled = !on; form.parentElement.hidden = !on; },
    fill: (text) => { area.value = text; grow(); area.focus(); },
  };
}
