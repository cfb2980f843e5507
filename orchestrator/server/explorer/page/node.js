// One agent, tool or capability: its neighbourhood, which can be walked, and all that is known of it.

import { address, announce, breaking, button, count, draw, fold, make, question, said, walk } from "./dom.js";
import { Overtaken, ask } from "./server.js";

const FEW = 12;
const MEANINGS = { td: "needs the tool", ti: "may need the tool", pd: "needs it for a parameter", pi: "may need it for a parameter" };
let shown = null, resized = null;

export async function showNode(panel, { capability = null, node: given = null, beside = false }, { focus }) {
  const id = capability ?? given;
  const wanted = id === null ? null : JSON.stringify([capability !== null, id, beside]);
  if (wanted === shown && panel.childElementCount) return;
  shown = wanted;
  if (id === null) { panel.replaceChildren(); return; }
  panel.setAttribute("aria-busy", "true");
  try {
    const node = await ask(capability === null ? "node" : "capability", { id }, "node");
    const head = make("h2", { tabindex: "-1", "aria-label": node.label }, breaking(node.label));
    panel.replaceChildren(...parts(node, head, beside).flat().filter(Boolean));
    if (focus) head.focus();
    if (!beside) announce(`${node.kind} ${node.label}, ${count(node.groups.reduce((n, group) => n + group.total, 0), "neighbour")}`);
    if (node.kind !== "capability") findings(panel.querySelector(".findings"), id);
  } catch (error) {
    if (error instanceof Overtaken) return;
    shown = null;
    panel.replaceChildren(make("p", { class: "error", role: "alert", text: error.message }));
  } finally {
    panel.removeAttribute("aria-busy");
  }
}

function parts(node, head, beside) {
  const asked = question();
  return [
    !beside && make("p", { class: "back" }, make("a", { href: address("search", asked), text: asked.q ? "Back to what was found" : "Back to all agents" })),
    make("p", { class: `kind ${node.kind}`, text: node.kind }), head,
    node.title && make("p", { class: "small", text: node.title }),
    node.owner && make("p", { class: "small" }, "tool of ", walk(node.owner)),
    make("p", { class: "words", text: node.about || "No description." }),
    make("h3", { text: "Neighbourhood" }), neighbourhood(node),
    fields("Parameters", node.parameters), fields("Results", node.outputs),
    node.facts.length > 0 && make("dl", {}, node.facts.map(said)),
    node.kind !== "capability" && make("div", { class: "findings", "aria-live": "polite" }),
    node.schemas.map((schema) => fold(schema.term, make("pre", { text: schema.text, tabindex: "0" }))),
  ];
}

function fields(title, given) {
  const row = (field) => make("div", { class: "said" },
    make("dt", {}, make("code", { text: field.name }), make("span", { class: "small", text: ` ${field.type}${field.required ? ", required" : ""}` })), make("dd", { text: field.about }));
  return given.length ? [make("h3", { text: title }), make("dl", { class: "fields" }, given.map(row))] : [];
}

function neighbourhood(node) {
  const lines = draw("svg", { class: "lines", "aria-hidden": "true", focusable: "false" });
  const here = make("div", { class: `here box-of ${node.kind}` }, make("strong", {}, breaking(short(node.label, node))));
  const graph = make("div", { class: "graph" }, lines), connected = () => connect(graph, lines, here);
  for (const side of ["above", "before", "here", "after", "below"])
    graph.append(make("div", { class: `side at-${side}` }, side === "here" ? here : node.groups.filter((group) => group.side === side).map((group) => lane(group, node, connected))));
  if (!node.groups.length) graph.append(make("p", { class: "small", text: "Nothing is beside it." }));
  resized?.disconnect();
  resized = new ResizeObserver(connected);
  resized.observe(graph);
  const used = new Set(node.groups.flatMap((group) => group.items.map((item) => item.relation)));
  const key = Object.entries(MEANINGS).filter(([kind]) => used.has(kind)).map(([kind, meaning]) =>
    make("li", {}, draw("svg", { width: 28, height: 10, "aria-hidden": "true" }, draw("path", { class: `edge ${kind}`, d: "M0 5h28" })), meaning));
  return make("div", { class: "around" }, graph, key.length > 0 && make("ul", { class: "key small" }, key));
}

function lane(group, node, changed) {
  const list = make("ul", {});
  const show = (most) => list.replaceChildren(...group.items.slice(0, most).map((one) => neighbour(one, group.side, node)));
  show(FEW);
  const more = group.items.length > FEW && button(`${group.items.length - FEW} more`, () => {
    show(group.items.length);
    more.remove();
    changed();
    list.children[FEW].querySelector("a").focus();
  }, { class: "more" });
  const rest = group.total > group.items.length && make("p", { class: "small", text: `The first ${group.items.length} of ${group.total.toLocaleString("en")}.` });
  return make("section", { class: "lane" }, make("h4", { text: group.total > 1 ? `${group.title} (${group.total.toLocaleString("en")})` : group.title }), list, more, rest);
}

/** The name of a tool without that of the agent that the page is about anyway. */
function short(label, node) {
  const agent = `${node.kind === "agent" ? node.label : node.owner?.label}/`;
  return label.startsWith(agent) ? label.slice(agent.length) : label;
}

function neighbour(one, side, node) {
  return make("li", { class: `box-of ${one.kind}`, "data-relation": one.relation, "data-side": side, "data-unreviewed": one.unreviewed && "", title: one.about || undefined },
    walk({ ...one, label: short(one.label, node) }, { "aria-label": one.label }), one.words && make("span", { class: "small", title: one.words, text: one.words }));
}

/** Lines from the node to its neighbours, behind the boxes; a dependency points at what is needed. */
function connect(graph, lines, here) {
  const ground = graph.getBoundingClientRect();
  lines.setAttribute("width", ground.width);
  lines.setAttribute("height", ground.height);
  const heads = draw("defs", {}, Object.keys(MEANINGS).map((kind) => draw("marker", { id: `to-${kind}`, class: kind, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" }))));
  const stacked = getComputedStyle(graph).gridTemplateColumns.split(" ").length === 1;
  // Above and below, rows stand in each other's way: one line leads to the heading of the whole group.
  const groups = [...graph.querySelectorAll(".side:is(.at-above, .at-below) .lane")].map((one) => [one.querySelector("h4"), one.querySelector("li")]);
  const boxes = [...graph.querySelectorAll(stacked ? "li.box-of" : ".side:is(.at-before, .at-after) li.box-of")].map((one) => [one, one]);
  const drawn = [...(stacked ? [] : groups), ...boxes].map(([box, of]) => {
    const { relation, side, unreviewed } = of.dataset;
    const [from, to] = (side === "before" ? [box, here] : [here, box]).map((one) => one.getBoundingClientRect());
    const d = curve(from, to, ground, stacked, side === "before" || side === "after");
    return draw("path", { class: `edge ${relation}${unreviewed === undefined ? "" : " unreviewed"}`, d, "marker-end": relation in MEANINGS && `url(#to-${relation})` });
  });
  lines.replaceChildren(heads, ...drawn);
}

function curve(from, to, ground, stacked, level) {
  const [a, b] = [from, to].map((box) => ({ left: box.left - ground.left, right: box.right - ground.left, x: box.left + box.width / 2 - ground.left, top: box.top - ground.top, bottom: box.bottom - ground.top, y: box.top + box.height / 2 - ground.top }));
  if (stacked) {
    const x = a.left - Math.min(22, 10 + Math.abs(b.y - a.y) / 40);
    return `M${a.left} ${a.y}C${x} ${a.y} ${x} ${b.y} ${a.left} ${b.y}`;
  }
  if (level && (a.right < b.left || b.right < a.left)) {
    const [x1, x2] = a.right < b.left ? [a.right, b.left] : [a.left, b.right], x = (x1 + x2) / 2;
    return `M${x1} ${a.y}C${x} ${a.y} ${x} ${b.y} ${x2} ${b.y}`;
  }
  const [y1, y2] = a.top < b.top ? [a.bottom, b.top] : [a.top, b.bottom], y = (y1 + y2) / 2;
  return `M${a.x} ${y1}C${a.x} ${y} ${b.x} ${y} ${b.x} ${y2}`;
}

async function findings(place, id) {
  const show = (title, content) => place.replaceChildren(make("h3", { text: title }), content);
  show("Findings", make("p", { class: "small", text: "Looking for what is wrong…" }));
  try {
    const all = await ask("findings", { id }, "findings");
    if (!all.length) show("Findings", make("p", { text: "Nothing is wrong with it." }));
    else show(`Findings (${all.length})`, make("ul", {}, all.map((one) => make("li", {}, make("span", { class: `badge ${one.severity}`, text: one.severity }), ` ${one.rule}: ${one.message}`))));
  } catch (error) {
    if (!(error instanceof Overtaken)) show("Findings", make("p", { class: "error", text: error.message }));
  }
}
