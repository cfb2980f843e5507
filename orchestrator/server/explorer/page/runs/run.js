// One request: its plan as a picture, its calls over time, what waits for a person, the answer, and every step.

import { count, fold, make, table, walk } from "../common/dom.js";
import { STATUS, dag, seconds } from "./dag.js";
import { questions } from "./questions.js";
import { timeline } from "./timeline.js";

const STATES = { running: "Running", waiting: "Waits for you", done: "Done", stopped: "Stopped" };
const ELSEWHERE = { ...STATES, waiting: "Waits for a person", stopped: "Not ended" };

/** An article that shows a run, and is told of each change by `show`. */
export function article({ decide, cancel, resume }) {
  const parts = Object.fromEntries(["head", "asks", "picture", "times", "answer", "changes", "steps", "models"].map((name) => [name, make("section", { class: `run-${name}` })]));
  parts.picture.classList.add("scroll");
  parts.answer.setAttribute("aria-live", "polite");
  const made = make("article", { class: "run" }, Object.values(parts));
  const before = {};
  let last = null;
  const put = (name, of, build) => {
    const key = JSON.stringify(of);
    if (before[name] === key) return;
    before[name] = key;
    const at = document.activeElement?.closest("[data-step]")?.dataset.step, within = parts[name].contains(document.activeElement);
    const built = [build()].flat(3).filter(Boolean);
    parts[name].replaceChildren(...built);
    parts[name].hidden = !built.length;
    if (within && at) parts[name].querySelector(`[data-step="${CSS.escape(at)}"]`)?.focus();
  };
  const choose = (id) => {
    const step = parts.steps.querySelector(`details[data-of="${CSS.escape(id)}"]`);
    if (!step) return;
    step.open = true;
    step.querySelector("summary").focus();
    step.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  };
  const pictures = (run) => {
    const wide = made.clientWidth - (parseFloat(getComputedStyle(parts.picture).paddingLeft) || 0) * 2;
    if (wide <= 0) return;
    const shape = run.steps.map((step) => [step.id, step.status, step.calls.map((call) => [call.tool.id, call.running, call.seconds, call.error])]);
    put("picture", [shape, run.status, Boolean(run.answer), Math.round(wide), run.questions.length], () => [make("h3", { text: "Plan" }), dag(run, wide, choose)]);
    put("times", [shape, run.status === "running" && Math.round(run.seconds * 4), Math.round(wide)], () => {
      const drawn = timeline(run, wide);
      return drawn && [make("h3", { text: "Timeline" }), drawn];
    });
  };
  new ResizeObserver(() => last && pictures(last)).observe(made);
  const show = (run) => {
    last = run;
    made.dataset.status = run.status;
    put("head", [run.request, run.status, run.note, run.trouble, Math.round(run.seconds ?? 0), run.usage], () => head(run, cancel, resume));
    put("asks", run.status === "waiting" ? run.questions : [], () => run.status === "waiting" && (decide || run.locked) && questions(run.questions, run.locked ? null : decide));
    pictures(run);
    put("answer", [run.answer, run.status], () => run.answer && [make("h3", { text: "Answer" }), make("p", { class: "answer-text words", text: run.answer })]);
    put("changes", run.revisions, () => run.revisions.length > 0 && [make("h3", { text: "Changes of the plan" }), make("ul", { class: "plain" }, run.revisions.map(revision))]);
    put("steps", run.steps, () => steps(run, parts.steps));
    put("models", run.models, () => run.models.length > 0 && models(run));
  };
  return { element: made, show };
}

function head(run, cancel, resume) {
  const resumes = (text) => make("button", { type: "button", text, on: { click: resume } });
  const took = run.seconds === null ? "" : seconds(run.seconds);
  const facts = [when(run.at), took, ...(run.usage ? [usage(run.usage), run.usage.cost.words] : []), run.note].filter(Boolean).join("  ·  ");
  return [make("div", { class: "run-title" }, make("h2", { tabindex: "-1", text: run.request }),
    make("div", { class: "row" }, make("span", { class: `badge ${run.status}`, text: (run.locked ? ELSEWHERE : STATES)[run.status] ?? run.status }),
      cancel && run.status === "running" && make("button", { type: "button", text: "Cancel", on: { click: cancel } }),
      resume && !run.locked && (run.status === "stopped" ? resumes("Resume") : run.status === "done" && run.steps.some((step) => step.status === "failed") && resumes("Repeat what failed")))),
  make("p", { class: "small", text: facts }), run.locked && make("p", { class: "note words", text: run.locked }), run.trouble && make("p", { class: "error words", text: run.trouble === "cancelled" ? "Cancelled. What was done is kept: Resume continues." : run.trouble })];
}

function revision(one) {
  const parts = [["added", one.added], ["changed", one.changed], ["dropped", one.dropped]].filter(([, ids]) => ids.length);
  const what = one.refused ? "not changed" : parts.map(([word, ids]) => `${word} ${ids.join(", ")}`).join("; ");
  return make("li", { class: "words", text: `After wave ${one.wave}: ${[what, one.reason].filter(Boolean).join(": ")}` });
}

/** Calls and tokens in words. */
export function usage(one) {
  return `${count(one.calls, "model call")}, ${one.input_tokens.toLocaleString("en")} input tokens (${one.cached_tokens.toLocaleString("en")} cached), ${one.output_tokens.toLocaleString("en")} output tokens`;
}

function models(run) {
  const rows = run.models.map((one) => [one.role, one.model || "not named", one.cost.amount === null ? "no price is known" : one.cost.words, one.calls, one.input_tokens, one.cached_tokens, one.output_tokens]);
  return table("Models", ["role", "model", "cost", "calls", "input tokens", "of them cached", "output tokens"], rows);
}

function steps(run, old) {
  if (!run.steps.length) return [];
  const open = new Set([...old.querySelectorAll("details[open]")].map((one) => one.dataset.of));
  return [make("h3", { text: "Steps" }), make("ol", { class: "steps" }, run.steps.map((one) => make("li", {}, step(one, open.has(one.id)))))];
}

function step(one, open) {
  const facts = [one.depends_on.length ? `after ${one.depends_on.join(", ")}` : "", one.attempts > 1 ? `${one.attempts} attempts` : "", one.calls.length ? `${count(one.calls.length, "call")}, ${seconds(one.seconds)}` : "", one.usage ? count(one.usage.input_tokens + one.usage.output_tokens, "token") : "", one.usage?.cost.amount != null ? one.usage.cost.words : ""].filter(Boolean).join("; ");
  const told = one.calls.at(-1)?.answer === one.result;
  const made = make("details", { class: "step-details", "data-of": one.id },
    make("summary", {}, make("span", { class: "rank", text: one.id }), make("span", { class: "step-title", text: one.text }), make("span", { class: `badge ${one.status}`, text: STATUS[one.status] ?? one.status }), facts && make("span", { class: "small", text: facts })),
    one.calls.length > 0 && make("ul", { class: "calls" }, one.calls.map(call)),
    one.result && !told && make("p", { class: "words", text: one.result }),
    one.error && make("p", { class: "words error", text: one.error }),
    one.picked.length > 0 && [make("h4", { text: "Why these tools" }), make("ul", { class: "picked" }, one.picked.map((picked) => make("li", {}, walk(picked.tool), make("span", { text: ` ${picked.why}` }), make("span", { class: "small", text: `  score ${picked.score.toFixed(2)}` }))))]);
  made.open = open;
  return made;
}

function call(one) {
  const head = [walk(one.tool), make("span", { class: "small", text: one.running ? "  running" : `  ${seconds(one.seconds)}` }), one.error ? make("span", { class: "badge failed", text: one.kind || "failed" }) : "", one.effect === "unknown" ? " (it may or may not have run)" : ""];
  const given = JSON.parse(plain(one.args) ?? "null");
  const short = given && Object.entries(given).map(([name, value]) => make("div", { class: "arg" }, make("dt", { text: name }), make("dd", { class: "words", text: typeof value === "string" ? value : JSON.stringify(value) })));
  return make("li", {}, make("p", {}, head), short ? make("dl", { class: "args" }, short) : make("pre", { text: one.args, tabindex: "0" }),
    one.error ? make("p", { class: "words error", text: one.error }) : one.answer && fold("Answer of the tool", make("pre", { text: one.answer, tabindex: "0" }), one.answer.length < 400),
    one.files > 0 && make("p", { class: "small", text: `${count(one.files, "file")} kept` }));
}

function plain(text) {
  try {
    return typeof JSON.parse(text) === "object" ? text : null;
  } catch {
    return null;
  }
}

/** A time as people write it here. */
export function when(at) {
  const time = new Date(at);
  return at && !Number.isNaN(time.valueOf()) ? time.toLocaleString() : "";
}
