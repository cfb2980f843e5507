// The map of all agents and tools: zoom, pan, search, and what stands under the pointer.

import { ask } from "../common/server.js";
import { address, announce, count, make, walk } from "../common/dom.js";
import { select, zoom, zoomIdentity } from "../library/graph.js";
import { laidOut } from "./layout.js";
import { colours, paint } from "./painting.js";

const ORIGINS = ["declared", "inferred", "observed", "named by a skill"], KEYS = ["declared", "inferred", "observed", "named"];
let kept = null;

/** What the server told of the catalog, with where everything stands; asked once. */
export async function known() {
  if (!kept) {
    const told = await ask("map");
    const began = performance.now();
    kept = { told, world: laidOut(told) };
    performance.measure("callsheet-map", { start: began, end: performance.now() });
  }
  return kept;
}

/** Forgets the map: somebody else is signed in. */
export function forgetMap() {
  kept = null;
}

function* counted(points) {
  const skills = points.filter((point) => point.skill).length;
  if (skills < points.length || !skills) yield count(points.length - skills, "tool");
  if (skills) yield count(skills, "skill");
}

/** The map: its element, and `light`, which shows the tools of these ids, and those that are called just now. */
export function map({ told, world }) {
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `Map of ${[count(told.agents.length, "agent"), ...counted(world.points)].join(", ")}. Arrow keys move it, plus and minus zoom, 0 shows all.` });
  const tip = make("div", { class: "tip", hidden: "" });
  const hits = make("ul", { class: "hits", "aria-label": "Found on the map" });
  const words = make("input", { type: "search", id: "map-words", placeholder: "Find on the map", "aria-label": "Find on the map", autocomplete: "off" });
  const hidden = new Set(), counts = ORIGINS.map((_, origin) => world.edges.filter((edge) => edge.origin === origin).length);
  const legend = make("div", { class: "map-legend", role: "group", "aria-label": "Dependencies" }, ORIGINS.map((name, origin) => counts[origin] > 0 && toggle(name, origin)));
  const button = (text, label, click) => make("button", { type: "button", text, "aria-label": label, on: { click } });
  const frame = make("section", { class: "map", "aria-label": "All agents and tools" },
    make("div", { class: "map-tools" }, words, legend, make("div", { class: "row" }, button("−", "Zoom out", () => by(1 / 1.6)), button("+", "Zoom in", () => by(1.6)), button("All", "Show all", () => fit()))),
    make("div", { class: "map-ground" }, canvas, tip, hits));
  const ink = canvas.getContext("2d");
  let at = zoomIdentity, size = { width: 0, height: 0 }, lit = null, active = new Set(), hover = null, colour = colours(document.body), due = 0, moved = false;

  function toggle(name, origin) {
    const box = make("input", { type: "checkbox", checked: "", on: { change: () => { if (box.checked) hidden.delete(origin); else hidden.add(origin); draw(); } } });
    return make("label", {}, box, make("span", { class: `key-line ${KEYS[origin]}`, "aria-hidden": "true" }), `${name} ${counts[origin].toLocaleString("en")}`);
  }

  function draw() {
    due ||= requestAnimationFrame(() => {
      due = 0;
      if (size.width) paint(ink, world, { ...size, at, colour, hidden, lit, active, hover, scale: devicePixelRatio });
    });
  }

  const gesture = zoom().scaleExtent([0.02, 12]).on("zoom", (event) => { at = event.transform; moved ||= Boolean(event.sourceEvent); tip.hidden = true; draw(); })
    // The wheel scrolls the page; with Ctrl, or two fingers, it zooms. The map must not be a trap.
    .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey || document.activeElement === canvas : !event.button && (event.type !== "touchstart" || event.touches.length > 1 || document.activeElement === canvas)));
  const chosen = select(canvas).call(gesture).on("dblclick.zoom", null);
  const by = (factor) => { moved = true; chosen.call(gesture.scaleBy, factor); };

  /** Shows these points, or all, as large as they fit. */
  function fit(points = null) {
    moved = false;
    const all = points?.length ? points.map((point) => ({ x: point.x, y: point.y, r: 30 })) : world.discs;
    if (!all.length || !size.width) return;
    const left = Math.min(...all.map((one) => one.x - one.r)), right = Math.max(...all.map((one) => one.x + one.r)), top = Math.min(...all.map((one) => one.y - one.r)) - 10, bottom = Math.max(...all.map((one) => one.y + one.r));
    const k = Math.min(3.2, (size.width - 40) / (right - left), (size.height - 40) / (bottom - top));
    chosen.call(gesture.transform, zoomIdentity.translate(size.width / 2 - (k * (left + right)) / 2, size.height / 2 - (k * (top + bottom)) / 2).scale(k));
  }

  function under(event) {
    const box = canvas.getBoundingClientRect(), x = (event.clientX - box.left - at.x) / at.k, y = (event.clientY - box.top - at.y) / at.k;
    const disc = world.discs.find((one) => Math.hypot(one.x - x, one.y - y) < one.r);
    const point = disc?.tools.find((one) => Math.hypot(one.x - x, one.y - y) < Math.max(4.5, 6 / at.k));
    return { disc, point: point && at.k > 0.45 ? point : null, left: event.clientX - box.left, top: event.clientY - box.top };
  }

  canvas.addEventListener("pointermove", (event) => {
    const found = under(event);
    canvas.style.cursor = found.disc ? "pointer" : "grab";
    tip.hidden = !found.disc;
    if (found.disc) {
      tip.replaceChildren(make("strong", { text: found.point ? found.point.name : found.disc.label }), make("span", { class: "small", text: found.disc.skill ? "skill" : found.point ? found.disc.label : count(found.disc.tools.length, "tool") }));
      tip.style.transform = `translate(${Math.min(found.left + 14, size.width - 220)}px, ${found.top + 14}px)`;
    }
    if (hover !== found.point) { hover = found.point; draw(); }
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (hover) { hover = null; draw(); } });
  canvas.addEventListener("click", (event) => {
    const { disc, point } = under(event);
    if (point) location.hash = address("search", { node: point.id });
    else if (disc && at.k > 1.4) location.hash = address("search", { node: disc.id });
    else if (disc) { fit(disc.tools.length ? disc.tools : null); moved = true; }
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }[event.key];
    if (step) { moved = true; chosen.call(gesture.translateBy, step[0] / at.k, step[1] / at.k); }
    else if (event.key === "+" || event.key === "=") by(1.4);
    else if (event.key === "-") by(1 / 1.4);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });
  words.addEventListener("input", () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = wanted.length ? world.points.filter((point) => wanted.every((word) => point.id.toLowerCase().includes(word))) : [];
    lit = wanted.length ? new Set(found) : null;
    hits.replaceChildren(...found.slice(0, 8).map((point) => make("li", {}, walk({ id: point.id, label: told.labels[point.id] ?? point.id, kind: point.skill ? "skill" : "tool" }))), ...(found.length > 8 ? [make("li", { class: "small", text: `and ${(found.length - 8).toLocaleString("en")} more` })] : []), ...(wanted.length && !found.length ? [make("li", { class: "small", text: `No tool${told.skills.length ? " or skill" : ""} has these words in its name.` })] : []));
    if (wanted.length) announce(`${[...counted(found)].join(" and ")} found`);
    if (found.length) fit(found); else if (!wanted.length) fit(); else draw();
  });
  new ResizeObserver(() => {
    const box = canvas.parentElement.getBoundingClientRect();
    if (!box.width || (box.width === size.width && box.height === size.height)) return;
    size = { width: box.width, height: box.height };
    canvas.width = Math.round(box.width * devicePixelRatio);
    canvas.height = Math.round(box.height * devicePixelRatio);
    if (moved) draw(); else fit(lit && [...lit]);
  }).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colour = colours(document.body); draw(); });
  const byId = new Map(world.points.map((point) => [point.id, point]));
  const points = (ids) => [...ids].map((id) => byId.get(id)).filter(Boolean);
  return {
    element: frame,
    light: (ids, now) => {
      const found = points(ids), same = lit && found.length === lit.size && found.every((point) => lit.has(point));
      lit = found.length ? new Set(found) : null;
      active = new Set(points(now));
      if (same || !found.length) draw(); else fit(found);
    },
  };
}
