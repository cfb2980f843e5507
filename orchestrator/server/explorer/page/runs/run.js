// One request: its plan as a picture, its calls over time, what waits for a person, the answer, and every step.

import { button, count, fold, make, place, table, walk } from "../dom.js";
import { STATUS, dag, seconds, timeline } from "./plan.js";
import { questions } from "./questions.js";
import { ask } from "../server.js";

/** How a run goes on, or how it ended. */
export const STATES = { running: "Running", waiting: "Waits for you", stopped: "Stopped", done: "Done", partly: "Partly done", failed: "Failed", refused: "Not done" };
export const isOver = (run) => !["running", "waiting", "stopped"].includes(run.status);

/** An article that shows a run, and is told of each change by `show`; without `acts` it is only looked at. */
export function article(acts = null) {
  const parts = Object.fromEntries(["head", "asks", "answer", "planning", "picture", "times", "changes", "steps", "models"].map((name) => [name, make("section", { class: `run-${name}` })]));
  parts.picture.classList.add("scroll");
  parts.answer.setAttribute("aria-live", "polite");
  const made = make("article", { class: "run" }, Object.values(parts)), before = {};
  let last = null;
  /** Builds a part again if `of`, what it is made of, has changed; the focus stays. */
  const put = (name, of, build) => {
    const key = JSON.stringify(of), part = parts[name];
    if (before[name] === key) return;
    before[name] = key;
    const at = part.contains(document.activeElement) && document.activeElement.closest("[data-step]")?.dataset.step;
    part.replaceChildren(...[build()].flat(3).filter(Boolean));
    part.hidden = !part.childElementCount;
    if (at) part.querySelector(`[data-step="${CSS.escape(at)}"]`)?.focus();
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
    put("head", [run.request, run.status, run.note, run.trouble, Math.round(run.seconds ?? 0), run.usage], () => head(run, acts));
    put("asks", run.status === "waiting" && run.questions, () => run.status === "waiting" && acts && questions(run.questions, acts.decide));
    const planning = run.status === "running" && !run.steps.length && !run.answer;
    put("planning", planning, () => planning && make("p", { class: "planning" }, make("span", { class: "pulse", "aria-hidden": "true" }), "Making a plan"));
    pictures(run);
    put("answer", [run.answer, run.status], () => run.answer && [make("h3", { text: "Answer" }), make("p", { class: "answer-text words", text: run.answer })]);
    put("changes", run.revisions, () => run.revisions.length > 0 && [make("h3", { text: "Changes of the plan" }), make("ul", { class: "plain" }, run.revisions.map(revision))]);
    put("steps", run.steps, () => {
      const open = new Set([...parts.steps.querySelectorAll("details[open]")].map((one) => one.dataset.of));
      return run.steps.length > 0 && [make("h3", { text: "Steps" }), make("ol", { class: "steps" }, run.steps.map((one) => make("li", {}, step(one, open.has(one.id)))))];
    });
    put("models", run.roles, () => run.roles.length > 0 && table("Models", ["role", "calls", "input tokens", "of them cached", "output tokens"],
      run.roles.map((one) => [one.role, one.calls, one.input_tokens, one.cached_tokens, one.output_tokens])));
  };
  return { element: made, show };
}

function head(run, acts) {
  const used = run.usage, n = (value) => value.toLocaleString("en");
  const facts = [run.seconds !== null && seconds(run.seconds),
    used && `${count(used.calls, "model call")}, ${n(used.input_tokens)} input tokens (${n(used.cached_tokens)} cached), ${n(used.output_tokens)} output tokens`, run.note];
  return [make("div", { class: "run-title" }, make("h2", { tabindex: "-1", text: run.request }),
    make("div", { class: "row" }, make("span", { class: `badge ${run.status}`, text: STATES[run.status] ?? run.status }),
      acts && run.status === "running" && button("Cancel", acts.cancel), acts && run.status === "stopped" && button("Resume", acts.resume),
      acts && isOver(run) && run.steps.some((step) => step.status === "failed") && button("Repeat what failed", acts.resume))),
  make("p", { class: "small" }, [when(run.began && run.began * 1000), ...facts].filter(Boolean).flatMap((fact, i) => (i ? ["  ·  ", fact] : fact))),
  run.trouble && make("p", { class: "error words", text: run.trouble === "cancelled" ? "Cancelled. What was done is kept: Resume continues." : run.trouble })];
}

function revision(one) {
  const words = ["added", "changed", "dropped"].filter((word) => one[word].length), signs = { added: "+", changed: "~", dropped: "-" };
  const parts = words.map((word) => `${word} ${one[word].map(({ id }) => id).join(", ")}`);
  const steps = words.flatMap((word) => one[word].filter(({ text }) => text).map(({ id, text }) => make("li", { class: "small", text: `${signs[word]} ${id}  ${text}` })));
  return make("li", { class: "words" }, `After wave ${one.wave}: ${[one.refused ? "not changed" : parts.join("; "), one.reason].filter(Boolean).join(": ")}`,
    steps.length > 0 && make("ul", { class: "plain" }, steps));
}

function step(one, open) {
  const progress = one.calls.find(({ running }) => running)?.progress;
  const facts = [progress, one.depends_on.length && `after ${one.depends_on.join(", ")}`, one.note, !progress && one.calls.length && `${count(one.calls.length, "call")}, ${seconds(one.calls.reduce((sum, { seconds: n }) => sum + n, 0))}`,
    one.usage && count(one.usage.input_tokens + one.usage.output_tokens, "token")].filter(Boolean).join("; ");
  const picked = (tool) => make("li", {}, walk(tool.tool), make("span", { text: `  ${tool.why}` }));
  const added = ({ what, tools }) => make("li", {}, `Asked for: ${what}: `, tools.length ? tools.flatMap((tool, i) => [i > 0 && ", ", walk(tool)]) : "nothing fits");
  const made = make("details", { class: "step-details", "data-of": one.id },
    make("summary", {}, make("span", { class: "rank", text: one.id }), make("span", { class: "step-title", text: one.text }), make("span", { class: `badge ${one.status}`, text: STATUS[one.status] ?? one.status }), facts && make("span", { class: "small", text: facts })),
    one.calls.length > 0 && make("ul", { class: "calls" }, one.calls.map(call)),
    one.result && one.calls.at(-1)?.answer !== one.result && make("p", { class: "words", text: one.result }),
    one.error && make("p", { class: "words error", text: one.error }),
    [one.picked, one.notes, one.added].some((all) => all.length) && [make("h4", { text: "Why these tools" }), make("ul", { class: "picked" }, one.picked.map(picked), one.notes.map(({ text }) => make("li", { class: "words note", text })), one.added.map(added))]);
  made.open = open;
  return made;
}

function call(one) {
  const shown = (text) => make("pre", { text, tabindex: "0" });
  return make("li", {}, make("p", {}, walk(one.tool), make("span", { class: "small", text: one.running ? `  ${one.progress || "running"}` : `  ${seconds(one.seconds)}` }),
    one.error && make("span", { class: "badge failed", text: one.kind || "failed" }), one.effect === "unknown" && " (it may or may not have run)"),
  one.args !== "{}" && make("pre", { class: "args", text: one.args, tabindex: "0" }),
  one.error ? make("p", { class: "words error", text: one.error }) : one.answer && fold("Answer of the tool", shown(one.answer), one.answer.length < 400),
  one.pictures.map(picture),
  one.files > 0 && make("p", { class: "small", text: `${count(one.files, "file")} kept` }));
}

const loaded = new Map();

/** A picture that a call returned; a name that has none any more is shown as text only. */
function picture(file) {
  const image = make("img", { alt: file });
  if (!loaded.has(file)) loaded.set(file, ask("picture", { id: place().given.get("id"), file }, file));
  loaded.get(file).then(({ media, data }) => { image.src = `data:${media};base64,${data}`; }).catch(() => { loaded.delete(file); image.replaceWith(make("p", { class: "small", text: file })); });
  return image;
}

const DAY = { weekday: "short", day: "numeric", month: "short" }, TIME = { hour: "numeric", minute: "2-digit" };

/** A time as people write it: "today, 17:25", "Mon 23 Nov, 17:25"; all of it is told where the pointer rests. */
export function when(at) {
  const time = new Date(at);
  if (!at || Number.isNaN(time.valueOf())) return null;
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000), same = time.getFullYear() === new Date().getFullYear();
  const day = { 0: "today", 1: "yesterday" }[days] ?? time.toLocaleDateString("en-GB", same ? DAY : { day: "numeric", month: "short", year: "numeric" });
  return make("time", { datetime: time.toISOString(), title: time.toLocaleString([], { dateStyle: "full", timeStyle: "long" }), text: `${day}, ${time.toLocaleTimeString([], TIME)}` });
}
