"use strict";
// Everything from the catalog goes into the page as text, never as markup.
const { nodes, meanings } = JSON.parse(document.getElementById("data").textContent);
const view = document.getElementById("view");
const svg = view.querySelector("svg");
const details = document.getElementById("details");
const search = document.getElementById("search");
const found = document.getElementById("found");
const size = { width: svg.width.baseVal.value, height: svg.height.baseVal.value };
const shapes = new Map();
for (const shape of svg.querySelectorAll("[data-n]")) shapes.set(Number(shape.dataset.n), shape);
const edges = Array.from(svg.querySelectorAll(".edge[data-a]"), (path) => ({ path, a: Number(path.dataset.a), b: Number(path.dataset.b) }));
const numbers = new Map(nodes.map((node, n) => [node.id, n]));
const words = nodes.map((node) => [node.id, node.title, node.about].join("\n").toLowerCase());
let scale = 1, hits = [], turn = -1, chosen = -1;

function zoom(to, x = view.clientWidth / 2, y = view.clientHeight / 2) {
  const before = scale;
  scale = Math.min(4, Math.max(0.15, to));
  svg.setAttribute("width", size.width * scale);
  svg.setAttribute("height", size.height * scale);
  view.scrollLeft = (view.scrollLeft + x) * scale / before - x;
  view.scrollTop = (view.scrollTop + y) * scale / before - y;
}

function make(tag, text = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function list(title, items) {
  if (!items.length) return;
  const all = make("ul");
  for (const item of items) {
    const line = make("li");
    line.append(...item);
    all.append(line);
  }
  details.append(make("h3", title), all);
}

function link(n) {
  const made = make("button", nodes[n].id, "link");
  made.type = "button";
  made.addEventListener("click", () => choose(n, true));
  return made;
}

function dependency(n, edge) {
  const said = [meanings[edge.kind]];
  if (edge.parameter) said.push(edge.parameter);
  if (edge.provenance) said.push(edge.provenance);
  if (edge.reason) said.push(edge.reason);
  return [link(n), make("div", said.join(": "), "small")];
}

function parameter(known) {
  const head = make("code", known.type ? `${known.name}: ${known.type}` : known.name, known.required ? "required" : "");
  return known.about ? [head, make("div", known.about, "small")] : [head];
}

function tell(n) {
  const node = nodes[n];
  const close = make("button", "×", "close");
  close.type = "button";
  close.title = "Close";
  close.addEventListener("click", clear);
  details.replaceChildren(close, make("h2", node.name));
  if (node.title && node.title !== node.name) details.append(make("p", node.title, "small"));
  if (node.agent !== undefined) {
    const owner = make("p", node.core ? "core tool of " : "tool of ", "small");
    owner.append(link(node.agent));
    details.append(owner);
  }
  details.append(make("p", node.about || "No description."));
  if (node.instructions) details.append(make("h3", "Instructions"), make("p", node.instructions));
  list("Parameters", (node.parameters || []).map(parameter));
  list("Results", (node.outputs || []).map(parameter));
  list("Needs", (node.needs || []).map((edge) => dependency(edge.to, edge)));
  list("Needed by", nodes.flatMap((other, m) => (other.needs || []).filter((edge) => edge.to === n).map((edge) => dependency(m, edge))));
  list("Capabilities", (node.capabilities || []).map((name) => [make("code", name)]));
  list("Hints of its author", (node.hints || []).map((hint) => [make("code", hint)]));
  list("Tools", nodes.flatMap((other, m) => (other.agent === n ? [[link(m)]] : [])));
  details.hidden = false;
  details.scrollTop = 0;
}

function choose(n, show = false) {
  unmark();
  chosen = n;
  const near = new Set([n]);
  nodes.forEach((node, m) => { if (node.agent === n) near.add(m); });
  for (const { path, a, b } of edges) {
    if (near.has(a) && near.has(b) ? nodes[n].agent === undefined : a === n || b === n) {
      path.classList.add("near");
      if (a === n || b === n) near.add(a).add(b);
    }
  }
  for (const m of near) shapes.get(m).classList.add("near");
  svg.classList.toggle("many", svg.querySelectorAll(".edge.near").length > 40);
  shapes.get(n).classList.add("chosen");
  svg.classList.add("selecting");
  tell(n);
  history.replaceState(null, "", `#${encodeURIComponent(nodes[n].id)}`);
  if (show) shapes.get(n).scrollIntoView({ block: "center", inline: "center" });
}

function unmark() {
  for (const marked of svg.querySelectorAll(".near, .chosen")) marked.classList.remove("near", "chosen");
  svg.classList.remove("selecting");
}

function clear() {
  unmark();
  chosen = -1;
  details.hidden = true;
  history.replaceState(null, "", "#");
}

function look() {
  const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = [];
  turn = -1;
  nodes.forEach((_, n) => {
    const hit = wanted.length > 0 && wanted.every((word) => words[n].includes(word));
    shapes.get(n).classList.toggle("hit", hit);
    if (hit) hits.push(n);
  });
  svg.classList.toggle("searching", wanted.length > 0);
  found.textContent = wanted.length ? `${hits.length} found` : "";
}

function nearest(target) {
  const shape = target instanceof Element ? target.closest("[data-n]") : null;
  return shape ? Number(shape.dataset.n) : -1;
}

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; look(); }
  if (event.key !== "Enter" || !hits.length) return;
  turn = (turn + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
  choose(hits[turn], true);
  found.textContent = `${turn + 1} of ${hits.length}`;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target !== search) clear();
  if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); }
});
svg.addEventListener("keydown", (event) => {
  const n = nearest(event.target);
  if (n >= 0 && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); choose(n); }
});

let drag = null, moved = false;
view.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || event.pointerType === "touch") return;
  moved = false;
  drag = { x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop };
});
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const left = drag.x - event.clientX, top = drag.y - event.clientY;
  if (!moved && Math.abs(left - view.scrollLeft) + Math.abs(top - view.scrollTop) < 5) return;
  moved = true;
  view.classList.add("dragging");
  view.scrollTo(left, top);
});
window.addEventListener("pointerup", () => { drag = null; view.classList.remove("dragging"); });
svg.addEventListener("click", (event) => {
  if (moved) return;
  const n = nearest(event.target);
  if (n >= 0) choose(n); else clear();
});
view.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const box = view.getBoundingClientRect();
  zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

function fit() {
  zoom(view.clientWidth / size.width);
  view.scrollTo(0, 0);
}

document.getElementById("in").addEventListener("click", () => zoom(scale * 1.25));
document.getElementById("out").addEventListener("click", () => zoom(scale / 1.25));
document.getElementById("fit").addEventListener("click", fit);
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});
for (const box of document.querySelectorAll("[data-kind]"))
  box.addEventListener("change", () => svg.classList.toggle(`hide-${box.dataset.kind}`, !box.checked));

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const wide = view.clientWidth / size.width;
if (wide > 0.8) zoom(Math.min(wide, 1.6));
let asked = "";
try { asked = decodeURIComponent(location.hash.slice(1)); } catch { asked = ""; }
if (numbers.has(asked)) choose(numbers.get(asked), true);
