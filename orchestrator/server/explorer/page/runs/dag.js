// The plan as a directed graph: a box for each step with what it calls, lit up as it runs.

import { draw } from "../common/dom.js";
import { Graph, layoutDag } from "../library/graph.js";

const WIDTH = 236, RAIL = 30, LINE = 18, PAD = 14, MOST_LINES = 3, MOST_CALLS = 3;
export const STATUS = {
  waiting: "waits its turn", running: "running", done: "done", failed: "failed", skipped: "skipped",
  needs_input: "needs input", needs_approval: "needs approval", outcome_unknown: "outcome unknown",
};
const SIGNS = { done: "M-4 0.5L-1.2 3.4L4.2 -3", failed: "M-3 -3L3 3M3 -3L-3 3", skipped: "M-4 0H4", waiting: "", running: "", needs_input: "M0 -4V1M0 3.6V4", needs_approval: "M0 -4V1M0 3.6V4", outcome_unknown: "M0 -4V1M0 3.6V4" };

/** The picture of a plan in so many pixels; `choose` is called with the id of a step. */
export function dag(run, width, choose) {
  const narrow = width < 640;
  const graph = new Graph().setGraph({ rankdir: "LR", nodesep: 16, ranksep: 52, marginx: 4, marginy: 6 });
  const wide = narrow ? width - RAIL - 4 : WIDTH;
  const boxes = new Map(run.steps.map((step) => [`step ${step.id}`, box(step, wide, run)]));
  graph.setNode("request", { width: 84, height: 34 });
  for (const [id, made] of boxes) graph.setNode(id, { width: wide, height: made.height });
  graph.setNode("answer", { width: 84, height: 34 });
  const needed = new Set(run.steps.flatMap((step) => step.depends_on));
  for (const step of run.steps) {
    for (const before of step.depends_on) if (boxes.has(`step ${before}`)) graph.setEdge(`step ${before}`, `step ${step.id}`, { weight: 3 });
    // The heavier edge is the shorter one: a step stands in the column of its wave.
    if (!step.depends_on.length) graph.setEdge("request", `step ${step.id}`, { weight: 9 });
    if (!needed.has(step.id)) graph.setEdge(`step ${step.id}`, "answer", { weight: 1 });
  }
  if (!run.steps.length) graph.setEdge("request", "answer", {});
  if (narrow) stack(graph, width); else layout(graph);
  const { width: w, height: h } = graph.graph();
  const picture = draw("svg", { class: "drawing dag", viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "group", "aria-label": `Plan: ${run.steps.length} step${run.steps.length === 1 ? "" : "s"}` });
  picture.style.minWidth = `${Math.min(w, w * 0.62)}px`;
  const status = new Map(run.steps.map((step) => [`step ${step.id}`, step.status]));
  for (const { v, w: to } of graph.edges()) picture.append(edge(graph.edge(v, to).points, lit(status.get(v) ?? "done", status.get(to) ?? (run.answer ? "done" : "waiting"))));
  picture.append(pill(graph.node("request"), "Request", "done"), pill(graph.node("answer"), "Answer", run.answer && run.status === "done" ? "done" : run.answer ? "running" : "waiting"));
  for (const step of run.steps) picture.append(placed(boxes.get(`step ${step.id}`), graph.node(`step ${step.id}`), step, choose));
  return picture;
}

/** The layout of the library, upside down where that shows the steps in their order. */
function layout(graph) {
  layoutDag(graph);
  const { height } = graph.graph();
  const steps = graph.nodes().map((id) => graph.node(id)), first = steps.filter((one) => one.x === steps[1]?.x);
  if (first.length < 2 || first[0].y <= first.at(-1).y) return;
  for (const one of steps) one.y = height - one.y;
  for (const at of graph.edges()) for (const point of graph.edge(at).points) point.y = height - point.y;
}

/** One below the other, with the edges in a rail on the left: for narrow windows. */
function stack(graph, width) {
  let y = 4;
  for (const id of graph.nodes()) {
    const node = graph.node(id);
    Object.assign(node, { x: id.startsWith("step ") ? RAIL + node.width / 2 : RAIL + node.width / 2 - 12, y: y + node.height / 2 });
    y += node.height + 14;
  }
  for (const { v, w } of graph.edges()) {
    const a = graph.node(v), b = graph.node(w), from = { x: a.x - a.width / 2, y: a.y }, to = { x: b.x - b.width / 2, y: b.y }, out = Math.min(RAIL - 4, 10 + (b.y - a.y) / 40);
    graph.edge(v, w).points = [from, { x: Math.min(from.x, to.x) - out, y: from.y }, { x: Math.min(from.x, to.x) - out, y: to.y }, to];
  }
  graph.setGraph({ width, height: y });
}

function lit(from, to) {
  if (to === "running") return "running";
  return from === "done" && to !== "waiting" ? "done" : "waiting";
}

function edge(points, kind) {
  const [first, ...others] = points;
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  others.forEach((point, i) => {
    const next = others[i + 1];
    const end = next && i < others.length - 1 ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : point;
    path += i === others.length - 1 ? `L${end.x.toFixed(1)} ${end.y.toFixed(1)}` : `Q${point.x.toFixed(1)} ${point.y.toFixed(1)} ${end.x.toFixed(1)} ${end.y.toFixed(1)}`;
  });
  return draw("path", { class: `flow ${kind}`, d: path });
}

function pill({ x, y, width, height }, text, kind) {
  const label = draw("text", { class: "pill-text", x, y: y + 5 });
  label.textContent = text;
  return draw("g", { class: `pill ${kind}` }, draw("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: height / 2 }), label);
}

function box(step, width, run) {
  const lines = wrapped(step.text, (width - 2 * PAD - 20) / 7.1, MOST_LINES);
  const calls = step.calls.slice(-MOST_CALLS).map((call) => ({ text: call.tool.label, kind: call.error ? "failed" : call.running ? "running" : "done", time: call.running ? "" : seconds(call.seconds) }));
  const asked = run.questions.find((one) => one.step === step.id && one.tool);
  if (asked) calls.push({ text: asked.tool.label, kind: "asked", time: "waits" });
  if (!calls.length && step.picked.length) calls.push({ text: step.picked[0].tool.label, kind: "picked", time: step.picked.length > 1 ? `+${step.picked.length - 1}` : "" });
  return { lines, calls, height: PAD * 2 + lines.length * LINE + (calls.length ? 8 + calls.length * 21 : 0) - 4, width };
}

function placed(made, { x, y, width, height }, step, choose) {
  const left = x - width / 2, top = y - height / 2;
  const told = `Step ${step.id}: ${step.text}. ${STATUS[step.status] ?? step.status}${step.calls.length ? `, calls ${step.calls.map((call) => call.tool.label).join(", ")}` : ""}`;
  const group = draw("g", { class: `step ${step.status}`, transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})`, tabindex: "0", role: "button", "aria-label": told, "data-step": step.id },
    draw("rect", { class: "step-box", width, height, rx: 10 }), draw("rect", { class: "step-mark", width: 4, height: height - 20, x: 0, y: 10, rx: 2 }));
  group.append(draw("g", { class: "sign", transform: `translate(${PAD + 8} ${PAD + 6})` }, draw("circle", { r: 8 }), draw("path", { d: SIGNS[step.status] ?? "" })));
  made.lines.forEach((line, i) => group.append(text("step-text", PAD + 24, PAD + 11 + i * LINE, line)));
  const below = PAD + made.lines.length * LINE + 8;
  made.calls.forEach((call, i) => {
    const at = below + i * 21, room = (width - 2 * PAD - 12 - (call.time ? call.time.length * 6.4 + 10 : 0)) / 6.5;
    group.append(draw("rect", { class: `chip ${call.kind}`, x: PAD, y: at - 4, width: width - 2 * PAD, height: 18, rx: 5 }), text(`chip-text ${call.kind}`, PAD + 6, at + 9, shortened(call.text, room)), text("chip-time", width - PAD - 6, at + 9, call.time));
  });
  group.addEventListener("click", () => choose(step.id));
  group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(step.id); } });
  return group;
}

function text(kind, x, y, content) {
  const made = draw("text", { class: kind, x, y });
  made.textContent = content;
  return made;
}

/** A name without its beginning where it has too many characters: the tool matters more than the agent. */
export function shortened(name, room) {
  const most = Math.floor(room);
  return name.length <= most ? name : `…${name.slice(1 - most)}`;
}

function wrapped(content, room, most) {
  const lines = [""];
  for (const word of content.split(/\s+/)) {
    const line = lines.at(-1);
    if (!line || line.length + word.length < room) lines[lines.length - 1] = line ? `${line} ${word}` : word;
    else lines.push(word);
  }
  const kept = lines.slice(0, most).map((line) => (line.length > room + 1 ? `${line.slice(0, room - 1)}…` : line));
  if (lines.length > most) kept[most - 1] = `${kept[most - 1].slice(0, Math.max(0, room - 2)).trimEnd()}…`;
  return kept;
}

/** "0.25 s", "12 s", "3 min". */
export function seconds(n) {
  if (n < 0.01) return "<0.01 s";
  return n < 10 ? `${n.toFixed(2)} s` : n < 100 ? `${n.toFixed(0)} s` : `${Math.round(n / 60)} min`;
}
