// Where requests begin, the list of runs, and a thread: its requests, the last one as it goes, and the next one.

import { address, alert, announce, button, count, fold, make } from "../dom.js";
import { after, clock, told } from "./events.js";
import { known, map } from "../map.js";
import { STATES, article, isOver, when } from "./run.js";
import { ask, failed, send, watch } from "../server.js";

const STATUS = { ...STATES, error: "Error" }, PAUSE = 50;
let following = null;

/** Stops following a run: another view is shown. */
export const leave = () => { following?.abort(); following = null; };

/** The first view: what is to be done, examples, and the map of all agents and tools. */
export async function showStart(view, given, overview) {
  const asking = overview.runs ? composer("Ask in your own words", start) : null;
  const find = make("a", { href: address("search"), text: asking ? "Only search for agents and tools" : "Search for agents and tools" });
  const examples = make("ul", { class: "examples", "aria-label": "Examples" }), ground = make("div", { class: "map-place", "aria-busy": "true" });
  view.replaceChildren(make("div", { class: "start" }, make("section", { class: "hero" }, make("h1", { text: asking ? "What do you want done?" : "Agents and tools" }), asking?.element, examples,
    make("p", { class: "small" }, find)), ground));
  asking?.area.focus();
  try {
    const catalog = await known();
    if (!ground.isConnected) return;
    ground.replaceChildren(map(catalog).element);
    announce(`${count(catalog.told.agents.length, "agent")}, ${count(catalog.told.tools.length, "tool")}`);
    if (asking) examples.replaceChildren(...catalog.told.examples.map((text) => make("li", {}, button(text, () => asking.fill(text)))));
  } finally {
    ground.removeAttribute("aria-busy");
  }

  async function start(text) {
    alert();
    try {
      location.hash = address("runs", { id: (await send("start", { text })).thread });
    } catch (error) {
      failed(error);
    }
  }
}

export async function showRuns(view, given, overview) {
  const id = given.get("id");
  if (overview.runs && id !== null) { showThread(view, id); return; }
  const threads = overview.runs ? await ask("runs") : [];
  const row = (one) => make("li", {}, make("a", { href: address("runs", { id: one.id }) },
    make("span", { class: "thread-text", text: one.request || one.id }),
    make("span", { class: `badge ${one.status}`, text: STATUS[one.status] ?? one.status }),
    make("span", { class: "small" }, when(one.at))));
  view.replaceChildren(make("section", { class: "runs" }, make("h1", { text: "Runs" }),
    threads.length ? make("ul", { class: "threads" }, threads.map(row)) : make("p", { text: overview.runs ? "There are none yet." : "Past runs are shown by the page that the LangGraph server serves." })));
  announce(count(threads.length, "run"));
}

function showThread(view, id) {
  const mine = (following = new AbortController());
  const act = (name, more = {}) => (answers) => change(name, { thread: id, ...more, ...(answers && { answers }) });
  const live = article({ decide: act("resume"), cancel: () => act("cancel")(), resume: () => act("resume")({}) });
  const earlier = make("div", { class: "earlier" }), tools = make("div", { class: "row exports" }), ground = beside();
  const next = composer("Ask a follow-up question", (text) => change("start", { text, thread: id }));
  view.replaceChildren(make("div", { class: "thread" }, make("p", { class: "back" }, make("a", { href: address("runs"), text: "All runs" })), earlier, live.element, tools, make("div", { class: "next" }, next.element), ground.element));
  const copy = async () => { await navigator.clipboard.writeText(location.href); announce("The link is copied"); };
  let run = told([]), last = null, answered = null, waiting = 0;

  /** Takes an event, and shows what all of them tell; many at once are shown together. */
  function take(event) {
    run = after(run, event);
    // A new request of the conversation takes the place of the one before.
    if (run.id && answered && run.id !== answered.id) earlier.append(turn(answered));
    if (run.id) answered = run;
    waiting ||= setTimeout(show, PAUSE);
  }

  function show() {
    clearTimeout(waiting);
    waiting = 0;
    if (mine.signal.aborted) return;
    if (last?.status !== run.status) announce(run.status === "waiting" ? `${count(run.questions.length, "question")} wait${run.questions.length === 1 ? "s" : ""} for you` : `${STATES[run.status]}${isOver(run) ? `. ${run.answer}` : ""}`);
    const first = last === null;
    last = run;
    const shown = { ...run, seconds: clock(run) };
    live.show(shown);
    ground.show(shown);
    if (first) live.element.querySelector("h2").focus();
    next.enable(isOver(run) || (run.status === "stopped" && !run.steps.length));
    tools.replaceChildren(...(run.steps.length ? [
      button("Copy link", () => copy().catch(failed), { class: "quiet" }),
      button("HTML page", () => save(run, live.element).catch(failed), { class: "quiet" })] : []));
  }

  // Between two events of the run, its clock goes on.
  const ticking = setInterval(() => { if (last?.status === "running") live.show({ ...last, seconds: clock(last) }); }, 250);
  mine.signal.addEventListener("abort", () => clearInterval(ticking));

  async function load() {
    const current = answered?.id;
    const [, ...others] = await ask("run", { id });
    // A request that began meanwhile has put the one before it in its place; this answer does not have it.
    if (answered?.id !== current) return;
    earlier.replaceChildren(...others.reverse().map((events) => turn(told(events))));
  }

  async function follow() {
    await watch(id, take, mine.signal).catch((error) => { if (!mine.signal.aborted) throw error; });
    if (mine.signal.aborted) return;
    if (waiting) show();
    await load();
  }

  async function change(name, given) {
    alert();
    try {
      await send(name, given);
      if (name === "start") next.clear();
      if (name !== "cancel") await follow();
    } catch (error) {
      failed(error);
    }
  }

  follow().catch((error) => {
    if (last === null) next.enable(false);
    failed(error);
  });
}

function turn(run) {
  const shown = article(), made = fold(run.request, make("div", {}, shown.element));
  made.className = "turn";
  made.addEventListener("toggle", () => made.open && shown.show(run));
  return make("section", { class: "earlier-turn" }, made, run.answer && make("p", { class: "words answer-text", text: run.answer }));
}

/** A field for a request: Enter sends it, Shift and Enter begins a new line. */
function composer(label, start) {
  const grow = () => { area.style.height = "auto"; area.style.height = `${Math.min(area.scrollHeight + 2, 260)}px`; };
  const go = (event) => { event.preventDefault(); if (area.value.trim() && !submit.disabled) start(area.value.trim()); else area.focus(); };
  const typed = (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) go(event); };
  const area = make("textarea", { id: "question", rows: "1", maxlength: "100000", placeholder: label, "aria-label": label, on: { input: grow, keydown: typed } });
  const submit = make("button", { class: "main", text: "Ask" });
  const element = make("form", { class: "composer", on: { submit: go } }, area, submit);
  return {
    element,
    area,
    clear: () => { area.value = ""; grow(); },
    enable: (on) => { submit.disabled = !on; element.parentElement.hidden = !on; },
    fill: (text) => { area.value = text; grow(); area.focus(); },
  };
}

/** The map beside a run: the tools that its steps were given stand out, and those that are called have a ring. */
function beside() {
  const words = make("p", { class: "small" });
  const element = make("aside", { class: "run-map", "aria-label": "Tools of this run on the map", hidden: "" }, make("h3", { text: "Where its tools are" }), words);
  let drawn = null, last = "";

  async function show(run) {
    const calls = run.steps.flatMap((step) => step.calls), ids = (all) => new Set(all.map((one) => one.tool.id));
    const given = ids([...run.steps.flatMap((step) => step.picked), ...calls]), called = ids(calls), now = ids(calls.filter((one) => one.running));
    const key = JSON.stringify([given, called, now].map((all) => [...all]));
    if (!given.size || key === last) return;
    last = key;
    words.textContent = [`${count(given.size, "tool")} selected`, `${called.size} called`, now.size && `${now.size} running`].filter(Boolean).join(", ");
    element.hidden = false;
    drawn ??= known().then((catalog) => {
      const shown = map(catalog);
      element.append(shown.element);
      return shown;
    }).catch(failed);
    (await drawn)?.light(given, now.size ? now : called, now.size > 0);
  }

  return { element, show };
}

/** Saves the run as one file that needs nothing else: no script, no request. */
async function save(run, element) {
  const name = run.request.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40).replace(/^-+|-+$/g, "") || "run";
  const made = document.implementation.createHTMLDocument(run.request), css = await (await fetch("explorer.css")).text(), copy = element.cloneNode(true);
  for (const one of copy.querySelectorAll("button, textarea, input, .questions")) one.remove();
  for (const one of copy.querySelectorAll("details")) one.open = true;
  for (const one of copy.querySelectorAll("time")) one.textContent = one.title;
  for (const attribute of ["href", "tabindex"]) for (const one of copy.querySelectorAll(`[${attribute}]`)) one.removeAttribute(attribute);
  made.head.prepend(make("meta", { charset: "utf-8" }), make("meta", { "http-equiv": "Content-Security-Policy", content: "default-src 'none'; style-src 'unsafe-inline'; img-src data:" }));
  made.body.append(make("main", {}, copy));
  // The style is added as text: this page's own policy would refuse it in a document made here.
  const html = `<!doctype html>\n${new XMLSerializer().serializeToString(made.documentElement).replace("</head>", () => `<style>${css}</style></head>`)}`;
  const link = make("a", { href: URL.createObjectURL(new Blob([html], { type: "text/html" })), download: `${name}.html` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(`Saved as ${link.download}`);
}
