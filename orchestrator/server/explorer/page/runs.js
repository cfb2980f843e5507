// Past runs: what was planned, what was called, how long it took, and what came of it.

import { ask } from "./api.js";
import { address, announce, count, fold, make, walk } from "./dom.js";

const STATUS = {
  done: "done", failed: "failed", needs_input: "needs input", outcome_unknown: "outcome unknown", skipped: "skipped", waiting: "not done yet",
  idle: "ended", busy: "at work", interrupted: "waits for a person", error: "error",
};

export async function showRuns(view, given, overview) {
  if (!overview.runs) {
    view.replaceChildren(make("section", { class: "wide" }, make("h1", { text: "Runs" }),
      make("p", { text: "Past runs are shown by the page that the LangGraph server serves." })));
    return;
  }
  const id = given.get("id");
  const [threads, runs] = await Promise.all([ask("runs"), id === null ? null : ask("run", { id })]);
  const list = make("section", { class: "results" }, make("h1", { text: "Runs" }), threads.length ? make("ul", { class: "everybody" }, threads.map((one) => thread(one, id)))
    : make("p", { text: "There are none yet." }));
  const details = make("section", { class: "details", "aria-label": "The chosen run" }, runs && make("p", { class: "back" }, make("a", { href: address("runs"), text: "Back to all runs" })), runs?.map(run));
  view.replaceChildren(make("div", { class: id === null ? "columns" : "columns chosen" }, list, details));
  announce(runs ? `${count(runs.length, "request")}, ${count(runs[0].steps.length, "step")} in the last` : count(threads.length, "run"));
  if (runs) details.querySelector("h2").focus();
}

function thread(one, chosen) {
  return make("li", {},
    make("a", { href: address("runs", { id: one.id }), text: one.request || one.id, "aria-current": one.id === chosen ? "true" : undefined }),
    make("p", { class: "small" }, badge(one.status), ` ${when(one.at)}`));
}

function run(one, i) {
  const longest = Math.max(...one.steps.map((step) => step.seconds), 0);
  return make("article", { class: "run" },
    make("h2", { tabindex: i ? undefined : "-1", text: one.request }),
    make("p", { class: "small", text: [when(one.at), one.seconds === null ? "" : `${one.seconds.toFixed(1)} s`, one.note].filter(Boolean).join("; ") }),
    one.waiting > 0 && make("p", { class: "note", text: `${count(one.waiting, "question")} of it wait${one.waiting === 1 ? "s" : ""} for a person.` }),
    one.question && make("p", { class: "words", text: `The supervisor asks: ${one.question}` }),
    make("h3", { text: "Plan" }),
    make("ol", { class: "steps" }, one.steps.map((each) => step(each, longest))),
    one.revisions.length > 0 && [make("h3", { text: "Changes of the plan" }), make("ul", {}, one.revisions.map(revision))],
    one.usage.calls > 0 && make("p", { class: "small", text: usage(one.usage) }),
    one.answer && [make("h3", { text: "Answer" }), make("p", { class: "words", text: one.answer })]);
}

function revision(one) {
  const parts = [["added", one.added], ["changed", one.changed], ["dropped", one.dropped]].filter(([, steps]) => steps.length);
  const what = one.refused ? "not changed" : parts.map(([word, steps]) => `${word} ${steps.join(", ")}`).join("; ");
  return make("li", { class: "words", text: `After wave ${one.wave}: ${[what, one.reason].filter(Boolean).join(": ")}` });
}

function usage(one) {
  return `${count(one.calls, "model call")}, ${one.input_tokens} input tokens (${one.cached_tokens} cached), ${one.output_tokens} output tokens`;
}

function step(one, longest) {
  const waits = one.depends_on.length ? `after ${one.depends_on.join(", ")}` : "";
  const often = one.attempts > 1 ? `${one.attempts} attempts` : "";
  const took = one.calls.length ? `${count(one.calls.length, "call")}, ${one.seconds.toFixed(2)} s` : "";
  const told = one.calls.at(-1)?.answer === one.result;
  return make("li", {},
    make("p", { class: "words" }, make("span", { class: "rank", text: one.id }), ` ${one.text} `, badge(one.status)),
    make("p", { class: "small", text: [waits, often, took].filter(Boolean).join("; ") }),
    one.calls.length > 0 && duration(one.seconds, longest),
    make("ul", { class: "calls" }, one.calls.map((each, i) => call(each, told && i === one.calls.length - 1))),
    one.result && !told && make("p", { class: "words", text: one.result }),
    one.error && make("p", { class: "words error", text: one.error }),
    one.picked.length > 0 && fold(`${count(one.picked.length, "tool")} picked`, make("ul", {}, one.picked.map((picked) => make("li", {}, walk(picked.tool),
      make("span", { class: "small", text: ` score ${picked.score.toFixed(2)}${picked.via.length ? `, for ${picked.via.join(" > ")}` : ""}` }))))));
}

function call(one, open) {
  const head = [walk(one.tool), ` ${one.seconds.toFixed(2)} s`, one.error ? make("span", { class: "badge error", text: one.kind || "failed" }) : "", one.effect === "unknown" ? " (it may or may not have run)" : ""];
  return make("li", {}, make("p", {}, head),
    fold("Arguments", make("pre", { text: one.args, tabindex: "0" })),
    one.error ? make("p", { class: "words error", text: one.error }) : fold("Answer", make("pre", { text: one.answer, tabindex: "0" }), open),
    one.files > 0 && make("p", { class: "small", text: `${count(one.files, "file")} kept` }));
}

function duration(seconds, longest) {
  const made = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  made.firstChild.style.width = longest ? `${Math.max(1, Math.round((100 * seconds) / longest))}%` : "0";
  return made;
}

function badge(status) {
  return make("span", { class: `badge ${status}`, text: STATUS[status] ?? status });
}

function when(at) {
  const time = new Date(at);
  return at && !Number.isNaN(time.valueOf()) ? time.toLocaleString() : "";
}
