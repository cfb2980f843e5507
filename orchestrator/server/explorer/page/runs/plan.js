// The plan as a directed graph: a box for each step with what it calls, lit up as it runs; and its calls over time.

import { draw } from "../dom.js";
import { Graph, layoutDag } from "../library/graph.js";

const WIDTH = 236, RAIL = 30, LINE = 18, PAD = 14, MOST_LINES = 3, MOST_CALLS = 3, ROW = 26, TOP = 26;
export const STATUS = {
  waiting: "waits its turn", running: "running", done: "done", partly: "partly done", failed: "failed", skipped: "skipped",
  needs_input: "needs input", needs_approval: "needs approval", outcome_unknown: "outcome unknown",
};
const ASKS = "M0 -4V1M0 3.6V4", SIGNS = { done: "M-4 0.5L-1.2 3.4L4.2 -3", partly: "M-4 0H4M0 -4V4", failed: "M-3 -3L3 3M3 -3L-3 3", skipped: "M-4 0H4", needs_input: ASKS, needs_approval: ASKS, outcome_unknown: ASKS };

const label = (kind, x, y, text, more = {}) => draw("text", { class: kind, x, y, text, ...more });

/** How wide a text is in pixels, with the font of its kind; it is measured, for fonts differ. */
function widthOf(kind, text) {
  probe ??= document.body.appendChild(draw("svg", { class: "drawing probe", "aria-hidden": "true" }, draw("text")));
  const measured = probe.firstChild;
  measured.setAttribute("class", kind);
  measured.textContent = text;
  return measured.getComputedTextLength();
}

let probe = null;

const state = (call) => (call.error ? "failed" : call.running ? "running" : "done");

/** The picture of a plan in so many pixels; `choose` is called with the id of a step. */
export function dag(run, width, choose) {
  const narrow = width < 640, wide = narrow ? width - RAIL - 4 : WIDTH, key = (step) => `step ${step}`;
  const graph = new Graph().setGraph({ rankdir: "LR", nodesep: 16, ranksep: 52, marginx: 4, marginy: 6 });
  const boxes = run.steps.map((step) => ({ step, ...content(step, wide, run) })), known = new Set(run.steps.map((step) => step.id));
  graph.setNode("request", { width: 84, height: 34 });
  for (const { step, height } of boxes) graph.setNode(key(step.id), { width: wide, height });
  graph.setNode("answer", { width: 84, height: 34 });
  const needed = new Set(run.steps.flatMap((step) => step.depends_on));
  for (const { id, depends_on: after } of run.steps) {
    for (const before of after) if (known.has(before)) graph.setEdge(key(before), key(id), { weight: 3 });
    // The heavier edge is the shorter one: a step stands in the column of its wave.
    if (!after.length) graph.setEdge("request", key(id), { weight: 9 });
    if (!needed.has(id)) graph.setEdge(key(id), "answer", { weight: 1 });
  }
  if (!run.steps.length) graph.setEdge("request", "answer", {});
  if (narrow) stack(graph, width); else layout(graph);
  const { width: w, height: h } = graph.graph(), answered = run.answer ? run.status : "waiting";
  const picture = draw("svg", { class: "drawing dag", viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "group", "aria-label": `Plan: ${run.steps.length} step${run.steps.length === 1 ? "" : "s"}` });
  picture.style.minWidth = `${Math.min(w, w * 0.62)}px`;
  const status = new Map([["request", "done"], ["answer", answered], ...run.steps.map((step) => [key(step.id), step.status])]);
  const lit = (from, to) => (to === "running" ? "running" : from === "done" && to !== "waiting" ? "done" : "waiting");
  for (const { v, w: to } of graph.edges()) picture.append(flow(graph.edge(v, to).points, lit(status.get(v), status.get(to))));
  picture.append(pill(graph.node("request"), "Request", "done"), pill(graph.node("answer"), "Answer", answered), ...boxes.map((box) => placed(box, graph.node(key(box.step.id)), choose)));
  return picture;
}

/** The layout of the library, upside down where that shows the steps in their order. */
function layout(graph) {
  layoutDag(graph);
  const { height } = graph.graph();
  const steps = graph.nodes().map((id) => graph.node(id)), first = steps.filter((one) => one.x === steps[1]?.x);
  if (first.length < 2 || first[0].y <= first.at(-1).y) return;
  for (const one of [...steps, ...graph.edges().flatMap((at) => graph.edge(at).points)]) one.y = height - one.y;
}

/** One below the other, with the edges in a rail on the left: for narrow windows. */
function stack(graph, width) {
  let y = 4;
  for (const id of graph.nodes()) {
    const node = graph.node(id);
    Object.assign(node, { x: RAIL + node.width / 2 - (id.startsWith("step ") ? 0 : 12), y: y + node.height / 2 });
    y += node.height + 14;
  }
  for (const { v, w } of graph.edges()) {
    const [from, to] = [v, w].map((id) => ({ x: graph.node(id).x - graph.node(id).width / 2, y: graph.node(id).y }));
    const x = Math.min(from.x, to.x) - Math.min(RAIL - 4, 10 + (to.y - from.y) / 40);
    graph.edge(v, w).points = [from, { x, y: from.y }, { x, y: to.y }, to];
  }
  graph.setGraph({ width, height: y });
}

function flow([first, ...others], kind) {
  const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const parts = others.map((point, i) => {
    const next = others[i + 1];
    return next ? `Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}` : `L${at(point)}`;
  });
  return draw("path", { class: `flow ${kind}`, d: `M${at(first)}${parts.join("")}` });
}

const pill = ({ x, y, width, height }, text, kind) => draw("g", { class: `pill ${kind}` }, draw("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: height / 2 }), label("pill-text", x, y + 5, text));

function content(step, width, run) {
  const lines = wrapped(step.text, width - 2 * PAD - 24, MOST_LINES);
  const calls = step.calls.slice(-MOST_CALLS).map((call) => ({ text: call.tool.label, kind: state(call), time: call.running ? "" : seconds(call.seconds) }));
  const asked = run.questions.find((one) => one.step === step.id && one.tool);
  if (asked) calls.push({ text: asked.tool.label, kind: "asked", time: "waits" });
  if (!calls.length && step.picked.length) calls.push({ text: step.picked[0].tool.label, kind: "picked", time: step.picked.length > 1 ? `+${step.picked.length - 1}` : "" });
  return { lines, calls, height: PAD * 2 + lines.length * LINE + (calls.length ? 8 + calls.length * 21 : 0) - 4 };
}

function placed({ step, lines, calls }, { x, y, width, height }, choose) {
  const told = `Step ${step.id}: ${step.text}. ${STATUS[step.status] ?? step.status}${step.calls.length ? `, calls ${step.calls.map((call) => call.tool.label).join(", ")}` : ""}`;
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(step.id); } };
  const below = PAD + lines.length * LINE + 8;
  const chip = (call, i) => {
    const at = below + i * 21, kind = `chip-text ${call.kind}`, room = width - 2 * PAD - 12 - (call.time ? widthOf("chip-time", call.time) + 8 : 0);
    return [draw("rect", { class: `chip ${call.kind}`, x: PAD, y: at - 4, width: width - 2 * PAD, height: 18, rx: 5 }), label(kind, PAD + 6, at + 9, shortened(kind, call.text, room)), label("chip-time", width - PAD - 6, at + 9, call.time)];
  };
  return draw("g", { class: `step ${step.status}`, transform: `translate(${(x - width / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})`, tabindex: "0", role: "button", "aria-label": told, "data-step": step.id, on: { click: () => choose(step.id), keydown: press } },
    draw("rect", { class: "step-box", width, height, rx: 10 }), draw("rect", { class: "step-mark", width: 4, height: height - 20, x: 0, y: 10, rx: 2 }),
    draw("g", { class: "sign", transform: `translate(${PAD + 8} ${PAD + 6})` }, draw("circle", { r: 8 }), draw("path", { d: SIGNS[step.status] ?? "" })),
    lines.map((line, i) => label("step-text", PAD + 24, PAD + 11 + i * LINE, line)), calls.map(chip));
}

/** A name without its beginning where it is wider than its room: the tool matters more than the agent. */
function shortened(kind, name, room) {
  if (widthOf(kind, name) <= room) return name;
  const left = [...name];
  while (left.length > 1 && widthOf(kind, `…${left.join("")}`) > room) left.shift();
  return `…${left.join("")}`;
}

/** A text in lines of so many pixels, `most` of them; what does not fit ends in "…". */
function wrapped(content, room, most) {
  const fits = (text) => widthOf("step-text", text) <= room, lines = [""];
  for (const word of content.split(/\s+/)) {
    const line = lines.at(-1), longer = line ? `${line} ${word}` : word;
    if (!line || fits(longer)) lines[lines.length - 1] = longer;
    else if (lines.length < most) lines.push(word);
    else { lines[most - 1] = `${line}…`; break; }
  }
  return lines.map((line) => {
    const left = [...line];
    if (fits(line)) return line;
    do left.pop(); while (left.length > 1 && !fits(`${left.join("").trimEnd()}…`));
    return `${left.join("").trimEnd()}…`;
  });
}

/** "0.25 s", "12 s", "3 min". */
export function seconds(n) {
  if (n < 0.01) return "<0.01 s";
  return n < 10 ? `${n.toFixed(2)} s` : n < 100 ? `${n.toFixed(0)} s` : `${Math.round(n / 60)} min`;
}

/** The calls of a run as bars in so many pixels; null if it is not known when they began. */
export function timeline(run, width) {
  const now = run.status === "running" ? run.began + run.seconds : 0;
  const bars = run.steps.flatMap((step) => step.calls.filter((call) => call.began).map((call) => ({ ...call, step, end: call.running ? Math.max(now, call.began) : call.began + call.seconds }))).sort((a, b) => a.began - b.began);
  if (!bars.length) return null;
  const narrow = width < 640, row = narrow ? ROW + 14 : ROW, left = narrow ? 12 : 232, right = narrow ? 64 : 76;
  const { place, cuts, span, ticks } = scale(bars, run.began || bars[0].began, left, width - right), height = TOP + bars.length * row + 8;
  const top = (x, text) => label("tick-text", x, 13, text, { "text-anchor": "middle" });
  const bar = (one, i) => {
    const y = TOP + i * row + (narrow ? 14 : 0), x = place(one.began), w = Math.max(3, place(one.end) - x), kind = state(one), text = narrow ? y - 3 : y + 15;
    return draw("g", { class: `call ${kind}` }, draw("title", { text: `Step ${one.step.id}, ${one.tool.label}: ${one.running ? "running" : seconds(one.seconds)}` }),
      label("row-step", narrow ? left : 6, text, one.step.id), label("row-text", narrow ? left + 22 : 30, text, shortened("row-text", one.tool.label, narrow ? width - left - 34 : left - 38)),
      draw("rect", { class: `bar-of ${kind}`, x, y: y + 4, width: w, height: 14, rx: 4 }), label("row-time", x + w + 6, y + 15, one.running ? "…" : seconds(one.seconds)));
  };
  return draw("svg", { class: "drawing timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Timeline: ${bars.length} call${bars.length === 1 ? "" : "s"} in ${seconds(span)}` },
    ticks.map((tick) => [draw("line", { class: "tick", x1: tick.x, x2: tick.x, y1: TOP - 6, y2: height }), top(tick.x, tick.text)]),
    cuts.map((cut) => [draw("rect", { class: "cut", x: cut.x, y: TOP - 6, width: cut.width, height: height - TOP + 6 }), top(cut.x + cut.width / 2, cut.text)]), bars.map(bar));
}

/** From seconds since 1970 to pixels; a pause that is longer than the work is drawn as a short one. */
function scale(bars, begin, left, right) {
  const busy = [];
  for (const { began, end } of bars) {
    const last = busy.at(-1);
    if (last && began <= last.end) last.end = Math.max(last.end, end);
    else busy.push({ began, end });
  }
  const most = Math.max(2, busy.reduce((sum, part) => sum + part.end - part.began, 0) * 0.6);
  const points = [{ at: begin, to: 0 }], gaps = [];
  for (const part of busy) {
    const { at, to } = points.at(-1), pause = Math.max(0, part.began - at), shown = Math.min(pause, most);
    if (pause > most) gaps.push({ from: to, to: to + shown, pause });
    points.push({ at: part.began, to: to + shown }, { at: part.end, to: to + shown + part.end - part.began });
  }
  const span = Math.max(points.at(-1).to, 0.05), px = (value) => left + (value / span) * (right - left);
  const place = (time) => {
    const i = Math.max(1, points.findIndex((point) => point.at >= time)), a = points[i - 1], b = points[i] ?? a;
    return px(b.at > a.at ? a.to + ((time - a.at) / (b.at - a.at)) * (b.to - a.to) : b.to);
  };
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600].find((one) => span / one <= 6) ?? span;
  const ticks = gaps.length ? [] : Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => ({ x: px(i * step), text: `${+(i * step).toFixed(2)} s` }));
  return { place, ticks, span, cuts: gaps.map((gap) => ({ x: px(gap.from), width: px(gap.to) - px(gap.from), text: `${seconds(gap.pause)} pause` })) };
}
