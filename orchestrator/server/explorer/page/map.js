// The map of all agents and tools: where they stand, how they are painted, zoom, pan, search, and what is under the pointer.

import { address, announce, button, count, make, walk } from "./dom.js";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, packSiblings, select, zoom, zoomIdentity } from "./library/graph.js";
import { ask } from "./server.js";

const ORIGINS = [["declared", "tool", 1.3, []], ["inferred", "faint", 1, [5, 4]], ["observed", "tool", 1.3, [1.5, 3.5]], ["named by a skill", "skill", 1.3, [7, 2]]];
const NAMED = 3, STEP = 9, TURN = Math.PI * (3 - Math.sqrt(5)), FULL = Math.PI * 2, SETTLED = 200;
const FONT = '11px "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace', BOLD = 'px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
let stored = null;

/** What the server told of the catalog, with where everything stands; asked once. */
export async function known() {
  if (!stored) {
    const told = await ask("map"), began = performance.now();
    stored = { told, world: laidOut(told, innerHeight > innerWidth) };
    performance.measure("callsheet-map", { start: began, end: performance.now() });
  }
  return stored;
}

/** Forgets the map: somebody else is signed in, or the catalog has changed. */
export const forgetMap = () => { stored = null; };

/** Discs and points for what the server sent, side by side or for a `tall` window; the same for the same catalog. */
export function laidOut({ agents, tools, edges, skills, labels }, tall = false) {
  const label = (id) => (Object.hasOwn(labels, id) ? labels[id] : id), short = (text, agent) => (text.startsWith(`${agent}/`) ? text.slice(agent.length + 1) : text);
  // A skill stands with the tools of the server that serves it, otherwise in a small disc of its own.
  const alone = skills.filter(([, , owner]) => owner === null);
  const discs = [...agents, ...alone.map(([id]) => id)].map((id, number) => ({ id, label: label(id), number, skill: number >= agents.length, tools: [] }));
  const points = [...tools.map(([name, agent, core]) => ({ id: `${agents[agent]}/${name}`, name: short(label(`${agents[agent]}/${name}`), label(agents[agent])), agent, core: Boolean(core) })),
    ...skills.map((one) => ({ id: one[0], name: one[2] === null ? label(one[0]) : short(label(one[0]), label(agents[one[2]])), agent: one[2] ?? agents.length + alone.indexOf(one), skill: true }))].map((point, number) => ({ ...point, number, needs: 0 }));
  const ties = [...edges, ...skills.flatMap(([, named], i) => named.map((tool) => [tools.length + i, tool, NAMED]))], links = new Map();
  for (const point of points) discs[point.agent].tools.push(point);
  for (const [from, to, origin] of ties) {
    points[to].needs += 1;
    const [a, b] = [points[from].agent, points[to].agent].sort((one, other) => one - other), key = `${a} ${b}`;
    if (a === b) continue;
    if (!links.has(key)) links.set(key, { source: a, target: b, n: 0, origins: new Set() });
    links.get(key).n += 1;
    links.get(key).origins.add(origin);
  }
  discs.forEach((disc, i) => {
    // What many tools need stands in the middle.
    disc.tools.sort((a, b) => b.needs - a.needs || a.number - b.number);
    disc.r = STEP * Math.sqrt(disc.tools.length) + 11;
    const far = 9 * Math.sqrt(i + 0.5) * Math.sqrt(points.length / Math.max(1, discs.length) + 4);
    Object.assign(disc, { x: far * Math.cos(i * TURN) * 1.9, y: far * Math.sin(i * TURN) });
  });
  // A tall window is less slender than a wide one.
  (discs.length > SETTLED ? pack : settle)(discs, [...links.values()], tall);
  if (tall) for (const disc of discs) [disc.x, disc.y] = [disc.y, disc.x];
  for (const disc of discs) disc.tools.forEach((tool, i) => {
    const far = disc.tools.length === 1 ? 0 : STEP * Math.sqrt(i + 0.4);
    Object.assign(tool, { x: disc.x + far * Math.cos(i * TURN), y: disc.y + far * Math.sin(i * TURN) });
  });
  return { discs, points, edges: ties.map(([from, to, origin]) => ({ from: points[from], to: points[to], origin })), links: [...links.values()].map(({ source, target, origins }) => ({ from: discs[source], to: discs[target], origins: [...origins] })) };
}

/** Few discs find their places by forces. */
function settle(discs, links, tall) {
  const ticks = 220, near = links.map((link) => ({ ...link }));
  const forces = forceSimulation(discs).stop()
    .force("apart", forceCollide((disc) => disc.r + 13).iterations(3))
    .force("linked", forceLink(near).distance((link) => link.source.r + link.target.r + 22).strength((link) => Math.min(0.4, 0.08 + link.n * 0.03)))
    .force("x", forceX(0).strength(tall ? 0.042 : 0.02)).force("y", forceY(0).strength(0.11))
    .force("away", forceManyBody().strength((disc) => -disc.r * 4).distanceMax(420)).alphaDecay(1 - 0.001 ** (1 / ticks));
  forces.tick(ticks);
  // At last nothing may lie over another.
  for (const name of ["linked", "x", "y", "away"]) forces.force(name, null);
  forces.force("apart").iterations(2);
  forces.alpha(1).alphaDecay(0).velocityDecay(0.6).tick(36);
}

/** Many discs are packed, those that are linked one after the other. */
function pack(discs, links, tall) {
  const near = new Map(discs.map((disc) => [disc, []])), order = new Set();
  for (const { source, target, n } of links) { near.get(discs[source]).push([n, discs[target]]); near.get(discs[target]).push([n, discs[source]]); }
  for (const start of [...discs].sort((a, b) => near.get(b).length - near.get(a).length || b.r - a.r || a.number - b.number)) {
    const waiting = [start];
    for (const disc of waiting) {
      if (order.has(disc)) continue;
      order.add(disc);
      waiting.push(...near.get(disc).sort((a, b) => b[0] - a[0]).map(([, other]) => other));
    }
  }
  for (const { disc, x, y } of packSiblings([...order].map((disc) => ({ disc, r: disc.r + 4 })))) Object.assign(disc, { x: x * (tall ? 1.3 : 1.7), y });
}

function numbers(points) {
  const skills = points.filter((point) => point.skill).length;
  return [(skills < points.length || !skills) && count(points.length - skills, "tool"), skills > 0 && count(skills, "skill")].filter(Boolean);
}

/** The map: its element, and `light`, which shows the tools of these ids, and those that were called, or are called just now. */
export function map({ told, world }) {
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `Map of ${[count(told.agents.length, "agent"), ...numbers(world.points)].join(", ")}. Arrow keys move it, plus and minus zoom, 0 shows all.` });
  const tip = make("div", { class: "tip", hidden: "" }), hits = make("ul", { class: "hits", "aria-label": "Found on the map" });
  const words = make("input", { type: "search", id: "map-words", placeholder: "Find on the map", "aria-label": "Find on the map", autocomplete: "off", on: { input: search } });
  const hidden = new Set(), legend = make("div", { class: "map-legend", role: "group", "aria-label": "Dependencies" }, ORIGINS.map(toggle));
  const frame = make("section", { class: "map", "aria-label": "All agents and tools" },
    make("div", { class: "map-tools" }, words, legend, make("div", { class: "row" }, button("−", () => by(1 / 1.6), { "aria-label": "Zoom out" }), button("+", () => by(1.6), { "aria-label": "Zoom in" }), button("All", () => fit(), { "aria-label": "Show all" }))),
    make("div", { class: "map-ground" }, canvas, tip, hits));
  const ink = canvas.getContext("2d"), byId = new Map(world.points.map((point) => [point.id, point]));
  let at = zoomIdentity, size = { width: 0, height: 0 }, lit = null, active = new Set(), alive = false, hover = null, colour = colours(), due = 0, moved = false;

  function toggle([name], origin) {
    const n = world.edges.filter((edge) => edge.origin === origin).length;
    const flip = (event) => { if (event.target.checked) hidden.delete(origin); else hidden.add(origin); draw(); };
    return n > 0 && make("label", {}, make("input", { type: "checkbox", checked: "", on: { change: flip } }), make("span", { class: `key-line ${name.split(" ")[0]}`, "aria-hidden": "true" }), `${name} ${n.toLocaleString("en")}`);
  }

  function draw() {
    due ||= requestAnimationFrame(() => {
      due = 0;
      if (size.width) paint(ink, world, { ...size, at, colour, hidden, lit, active, alive, hover });
    });
  }

  const gesture = zoom().scaleExtent([0.02, 12]).on("zoom", (event) => { at = event.transform; moved ||= Boolean(event.sourceEvent); tip.hidden = true; draw(); })
    // The wheel scrolls the page; with Ctrl, or two fingers, it zooms. The map must not be a trap.
    .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey || document.activeElement === canvas : !event.button && (event.type !== "touchstart" || event.touches.length > 1 || document.activeElement === canvas)));
  const chosen = select(canvas).call(gesture).on("dblclick.zoom", null);
  const by = (factor) => { moved = true; chosen.call(gesture.scaleBy, factor); };

  /** Shows these points, or all, as large as they fit. */
  function fit(points = []) {
    moved = false;
    const all = points.length ? points.map(({ x, y }) => ({ x, y, r: 30 })) : world.discs;
    if (!all.length || !size.width) return;
    const left = Math.min(...all.map((one) => one.x - one.r)), right = Math.max(...all.map((one) => one.x + one.r)), top = Math.min(...all.map((one) => one.y - one.r)) - 10, bottom = Math.max(...all.map((one) => one.y + one.r));
    const k = Math.min(3.2, (size.width - 40) / (right - left), (size.height - 40) / (bottom - top));
    chosen.call(gesture.transform, zoomIdentity.translate(size.width / 2 - (k * (left + right)) / 2, size.height / 2 - (k * (top + bottom)) / 2).scale(k));
  }

  function under({ clientX, clientY }) {
    const box = canvas.getBoundingClientRect(), left = clientX - box.left, top = clientY - box.top, [x, y] = at.invert([left, top]);
    const within = (one, r) => Math.hypot(one.x - x, one.y - y) < r;
    // A finger meets a small disc beside it, too.
    const disc = world.discs.find((one) => within(one, one.r)) ?? world.discs.find((one) => within(one, 16 / at.k)), point = disc?.tools.find((one) => within(one, Math.max(4.5, 6 / at.k)));
    return { disc, point: point && at.k > 0.45 ? point : null, left, top };
  }

  const look = (point) => { if (hover !== point) { hover = point; draw(); } };
  canvas.addEventListener("pointermove", (event) => {
    const { disc, point, left, top } = under(event);
    canvas.style.cursor = disc ? "pointer" : "grab";
    tip.hidden = !disc;
    if (disc) {
      tip.replaceChildren(make("strong", { text: point ? point.name : disc.label }), make("span", { class: "small", text: disc.skill ? "skill" : point ? disc.label : numbers(disc.tools).join(", ") }));
      tip.style.transform = `translate(${Math.min(left + 14, size.width - 220)}px, ${top + 14}px)`;
    }
    look(point);
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; look(null); });
  canvas.addEventListener("click", (event) => {
    const { disc, point } = under(event), node = point ?? (at.k > 1.4 ? disc : null);
    if (node) location.hash = address("search", { node: node.id });
    else if (disc) { fit(disc.tools); moved = true; }
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

  function search() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const points = wanted.length ? world.points.filter((point) => wanted.every((word) => point.id.toLowerCase().includes(word))) : [];
    const more = points.length > 8 ? `and ${(points.length - 8).toLocaleString("en")} more` : wanted.length && !points.length ? `No tool${told.skills.length ? " or skill" : ""} has these words in its name.` : "";
    lit = wanted.length ? new Set(points) : null;
    hits.replaceChildren(...points.slice(0, 8).map((point) => make("li", {}, walk({ id: point.id, label: told.labels[point.id] ?? point.id, kind: point.skill ? "skill" : "tool" }))), ...(more ? [make("li", { class: "small", text: more })] : []));
    if (wanted.length) announce(`${numbers(points).join(" and ")} found`);
    if (points.length || !wanted.length) fit(points); else draw();
  }

  new ResizeObserver(() => {
    const { width, height } = canvas.parentElement.getBoundingClientRect();
    if (!width || (width === size.width && height === size.height)) return;
    size = { width, height };
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    if (moved) draw(); else fit(lit ? [...lit] : []);
  }).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colour = colours(); draw(); });
  const points = (ids) => [...ids].map((id) => byId.get(id)).filter(Boolean);
  return {
    element: frame,
    light: (ids, called, running) => {
      const shown = points(ids), same = lit && shown.length === lit.size && shown.every((point) => lit.has(point));
      lit = shown.length ? new Set(shown) : null;
      [active, alive] = [new Set(points(called)), running];
      if (same || !shown.length) draw(); else fit(shown);
    },
  };
}

/** The colours of the page, light or dark. */
function colours() {
  const style = getComputedStyle(document.body);
  return Object.fromEntries(["panel", "ink", "faint", "rule", "accent", "mark", "live", "tool", "skill"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Paints `world` at { x, y, k }: what is far away is a disc, what is near has its name. `lit` is the set of points that stand out, or null; `active` were called, or are called just now if they are `alive`. */
function paint(ink, world, { width, height, at, colour, hidden, lit, active, alive, hover }) {
  const scale = devicePixelRatio, [left, top] = at.invert([0, 0]), [right, bottom] = at.invert([width, height]);
  const inView = ({ x, y }, r) => x + r > left && x - r < right && y + r > top && y - r < bottom;
  const discs = world.discs.filter((disc) => inView(disc, disc.r)), shared = (disc) => disc.tools.reduce((n, point) => n + lit.has(point), 0);
  const circle = ({ x, y }, r) => { ink.moveTo(x + r, y); ink.arc(x, y, r, 0, FULL); };
  const curve = ({ from, to }) => {
    const dx = to.x - from.x, dy = to.y - from.y;
    ink.moveTo(from.x, from.y);
    ink.quadraticCurveTo(from.x + dx / 2 - dy * 0.16, from.y + dy / 2 + dx * 0.16, to.x, to.y);
  };
  /** One path of many parts, as a line so many pixels wide. */
  const stroke = (all, part, style, pixels, alpha = 1, dashes = []) => {
    ink.beginPath();
    for (const one of all) part(one);
    Object.assign(ink, { strokeStyle: style, lineWidth: pixels / at.k, globalAlpha: alpha });
    ink.setLineDash(dashes.map((dash) => dash / at.k));
    ink.stroke();
  };
  const fill = (all, part, style, alpha) => {
    ink.beginPath();
    Object.assign(ink, { fillStyle: style, globalAlpha: alpha });
    for (const one of all) part(one);
    ink.fill();
  };

  ink.setTransform(scale, 0, 0, scale, 0, 0);
  ink.clearRect(0, 0, width, height);
  ink.setTransform(scale * at.k, 0, 0, scale * at.k, scale * at.x, scale * at.y);
  fill(discs, (disc) => circle(disc, disc.r), colour.mark, 0.75);
  stroke(discs, (disc) => circle(disc, disc.r), colour.rule, 1);
  if (world.edges.length < 2500 || at.k > 0.9) ORIGINS.forEach(([, name, pixels, dashes], origin) => {
    const seen = world.edges.filter((edge) => edge.origin === origin && !hidden.has(origin) && (inView(edge.from, 60) || inView(edge.to, 60)));
    stroke(seen, curve, colour[name], pixels, (0.22 + 0.45 * Math.min(1, 500 / (world.edges.length + 1))) * (lit ? 0.12 : 1), dashes);
  });
  else stroke(world.links.filter((link) => !link.origins.every((origin) => hidden.has(origin))), curve, colour.tool, 0.9, Math.max(0.05, Math.min(0.3, 160 / world.links.length)) * (lit ? 0.3 : 1));
  if (hover) ORIGINS.forEach(([, name, pixels, dashes], origin) =>
    stroke(world.edges.filter((edge) => edge.origin === origin && !hidden.has(origin) && (edge.from === hover || edge.to === hover)), curve, colour[name], pixels * 1.8, 1, dashes));
  const groups = Object.groupBy(discs.flatMap((disc) => disc.tools), (point) => (lit && !lit.has(point) ? "faint" : point.skill ? "skill" : point.core || lit ? "ink" : "tool"));
  for (const name of ["tool", "ink", "faint", "skill"]) fill(groups[name] ?? [], (point) => {
    const r = radius(point, at.k);
    // Thousands of small squares cost less than one path of thousands of circles.
    if (r * at.k < 2.2) ink.fillRect(point.x - r, point.y - r, 2 * r, 2 * r); else circle(point, r);
  }, colour[name], name === "faint" ? 0.35 : 1);
  stroke(active, (point) => circle(point, 9 / at.k), alive ? colour.live : colour.ink, 2.5);
  ink.setTransform(scale, 0, 0, scale, 0, 0);
  ink.setLineDash([]);

  Object.assign(ink, { textBaseline: "middle", textAlign: "left", lineJoin: "round", lineWidth: 3.5, strokeStyle: colour.panel, fillStyle: colour.ink });
  for (const { text, font, x, y, h } of names(world, { width, height, at, lit, active }, (text, font) => { ink.font = font; return ink.measureText(text).width; })) {
    ink.font = font;
    ink.strokeText(text, x, y + h / 2);
    ink.fillText(text, x, y + h / 2);
  }
}

const radius = (point, k) => Math.max(1.1 / k, Math.min(4.2, 2.1 + 0.45 * Math.log2(1 + point.needs)));
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The names and their places in pixels: inside the window, none over another, and none over a point that can be seen. */
export function names(world, { width, height, at, lit, active }, measure) {
  const taken = [], made = [], screen = ({ x, y }, r) => { const [left, top] = at.apply([x, y]); return { x: left, y: top, r: r * at.k }; };
  const seen = ({ x, y, r }) => x + r > 0 && x - r < width && y + r > 0 && y - r < height;
  const discs = world.discs.map((disc) => ({ disc, ...screen(disc, disc.r) })).filter(seen), all = discs.flatMap(({ disc }) => disc.tools);
  const points = (all.length < 2000 || at.k > 1 ? all : []).map((point) => ({ point, ...screen(point, active?.has(point) ? 11 / at.k : radius(point, at.k)) })).filter(seen);
  for (const { x, y, r } of points) taken.push({ x: x - r - 1, y: y - r - 1, w: 2 * r + 2, h: 2 * r + 2 });
  const free = (box) => box.x > 2 && box.y > 2 && box.x + box.w < width - 2 && box.y + box.h < height - 2 && !taken.some((one) => box.x < one.x + one.w && box.x + box.w > one.x && box.y < one.y + one.h && box.y + box.h > one.y);
  const outside = (box) => discs.every(({ x, y, r }) => Math.hypot(Math.max(box.x, Math.min(x, box.x + box.w)) - x, Math.max(box.y, Math.min(y, box.y + box.h)) - y) > r);
  const put = (text, font, h, { x, y, r }, order, better = () => true) => {
    const w = measure(text, font) + 4, sides = { above: [x - w / 2, y - r - h - 1], below: [x - w / 2, y + r + 1], right: [x + r + 3, y - h / 2], left: [x - r - w - 3, y - h / 2],
      northwest: [x + r - w, y - r - h - 1], northeast: [x - r, y - r - h - 1], southwest: [x + r - w, y + r + 1], southeast: [x - r, y + r + 1] };
    const boxes = order.map((side) => ({ x: sides[side][0], y: sides[side][1], w, h })), box = boxes.find((one) => better(one) && free(one)) ?? boxes.find(free);
    if (box) { taken.push(box); made.push({ text, font, ...box }); }
    return Boolean(box);
  };
  // In a narrow window, names are smaller, so that more of them have room.
  const bold = width < 600 ? `600 11${BOLD}` : `600 13${BOLD}`, high = width < 600 ? 14 : 17;
  const shared = ({ disc }) => disc.tools.reduce((n, point) => n + lit.has(point), 0), named = active?.size ? active : lit;
  for (const one of discs.filter((one) => !lit || shared(one)).sort((a, b) => (lit ? shared(b) - shared(a) : 0) || b.disc.tools.length - a.disc.tools.length || a.disc.number - b.disc.number).slice(0, 400))
    [30, 12].some((most) => put(cut(one.disc.label, most), bold, high, one, ["above", "below", "right", "left", "northwest", "northeast", "southwest", "southeast"], outside));
  if (at.k >= 1.5 || lit) for (const one of points.filter(({ point }) => !named || named.has(point)).slice(0, 400)) put(cut(one.point.name, 34), FONT, 14, one, ["right", "left", "below", "above"]);
  return made;
}
