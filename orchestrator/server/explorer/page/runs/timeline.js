// Calls over time: a bar for each, in the rows of their steps; long waits are cut short and say so.

import { draw } from "../common/dom.js";
import { seconds, shortened } from "./dag.js";

const ROW = 26, TOP = 26;

/** The calls of a run as bars in so many pixels; null if it is not known when they began. */
export function timeline(run, width) {
  const calls = run.steps.flatMap((step) => step.calls.filter((call) => call.began).map((call) => ({ ...call, step })));
  if (!calls.length) return null;
  const now = run.status === "running" ? run.began + run.seconds : 0;
  const bars = calls.map((call) => ({ ...call, end: call.running ? Math.max(now, call.began) : call.began + call.seconds })).sort((a, b) => a.began - b.began);
  const narrow = width < 640, left = narrow ? 12 : 232, right = narrow ? 64 : 76;
  const { place, cuts, span, ticks } = scale(bars, run.began || bars[0].began, left, width - right);
  const height = TOP + bars.length * (narrow ? ROW + 14 : ROW) + 8;
  const told = `Timeline: ${bars.length} call${bars.length === 1 ? "" : "s"} in ${seconds(span)}`;
  const picture = draw("svg", { class: "drawing timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told });
  for (const tick of ticks) picture.append(draw("line", { class: "tick", x1: tick.x, x2: tick.x, y1: TOP - 6, y2: height }), label("tick-text", tick.x, 13, tick.text, "middle"));
  for (const cut of cuts) picture.append(draw("rect", { class: "cut", x: cut.x, y: TOP - 6, width: cut.width, height: height - TOP + 6 }), label("tick-text", cut.x + cut.width / 2, 13, cut.text, "middle"));
  bars.forEach((bar, i) => {
    const y = TOP + i * (narrow ? ROW + 14 : ROW) + (narrow ? 14 : 0), x = place(bar.began), w = Math.max(3, place(bar.end) - x);
    const kind = bar.error ? "failed" : bar.running ? "running" : "done";
    const title = draw("title");
    title.textContent = `Step ${bar.step.id}, ${bar.tool.label}: ${bar.running ? "running" : seconds(bar.seconds)}`;
    picture.append(draw("g", { class: `call ${kind}` }, title,
      label("row-step", narrow ? left : 6, narrow ? y - 3 : y + 15, bar.step.id), label("row-text", narrow ? left + 22 : 30, narrow ? y - 3 : y + 15, shortened(bar.tool.label, narrow ? (width - 60) / 6.6 : 29)),
      draw("rect", { class: `bar-of ${kind}`, x, y: y + 4, width: w, height: 14, rx: 4 }),
      label("row-time", x + w + 6, y + 15, bar.running ? "…" : seconds(bar.seconds))));
  });
  return picture;
}

/** From seconds since 1970 to pixels; a pause that is longer than the work is drawn as a short one. */
function scale(bars, begin, left, right) {
  const busy = [];
  for (const bar of bars) {
    const last = busy.at(-1);
    if (last && bar.began <= last.end) last.end = Math.max(last.end, bar.end);
    else busy.push({ began: bar.began, end: bar.end });
  }
  const work = busy.reduce((sum, part) => sum + part.end - part.began, 0), most = Math.max(2, work * 0.6);
  const points = [{ at: begin, to: 0 }], gaps = [];
  let at = begin, to = 0;
  for (const part of busy) {
    const pause = Math.max(0, part.began - at), shown = Math.min(pause, most);
    if (pause > most) gaps.push({ from: to, to: to + shown, pause });
    points.push({ at: part.began, to: (to += shown) }, { at: part.end, to: (to += part.end - part.began) });
    at = part.end;
  }
  const all = Math.max(to, 0.05), px = (value) => left + (value / all) * (right - left);
  const place = (time) => {
    const i = Math.max(1, points.findIndex((point) => point.at >= time)), a = points[i - 1], b = points[i] ?? a;
    return px(b.at > a.at ? a.to + ((time - a.at) / (b.at - a.at)) * (b.to - a.to) : b.to);
  };
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600].find((one) => all / one <= 6) ?? all;
  const ticks = gaps.length ? [] : Array.from({ length: Math.floor(all / step) + 1 }, (_, i) => ({ x: px(i * step), text: `${+(i * step).toFixed(2)} s` }));
  const cuts = gaps.map((gap) => ({ x: px(gap.from), width: px(gap.to) - px(gap.from), text: `${seconds(gap.pause)} pause` }));
  return { place, cuts, ticks, span: all };
}

function label(kind, x, y, content, anchor = "start") {
  const made = draw("text", { class: kind, x, y, "text-anchor": anchor });
  made.textContent = content;
  return made;
}
