// One agent, tool or capability: its neighbourhood, which can be walked, and all that is known of it.

import { Overtaken, ask } from "../common/server.js";
import { address, announce, breaking, count, draw, fold, make, question, said, walk } from "../common/dom.js";

const FEW = 12;
const SIDES = ["above", "before", "here", "after", "below"];
const MEANINGS = {
  td: "needs the tool", ti: "may need the tool", pd: "needs it for a parameter", pi: "may need it for a parameter",
};
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
    panel.replaceChildren(...parts(node, head, beside).filter(Boolean));
    if (focus) head.focus();
    if (!beside) announce(`${node.kind} ${node.label}, ${count(node.groups.reduce((n, group) => n + group.total, 0), "neighbour")}`);
    if (node.kind !== "capability") lookInto(panel.querySelector(".findings"), id);
  } catch (error) {
    if (!(error instanceof Overtaken)) { shown = null; panel.replaceChildren(make("p", { class: "error", role: "alert", text: error.message })); }
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
    ...fields("Parameters", node.parameters), ...fields("Results", node.outputs),
    (node.facts.length + node.pins.length > 0) && make("dl", {}, node.facts.map((fact) => said(fact)), node.pins.map((pin) => said(pin))),
    node.kind !== "capability" && make("div", { class: "findings", "aria-live": "polite" }),
    ...node.schemas.map((schema) => fold(schema.term, make("pre", { text: schema.text, tabindex: "0" }))),
  ];
}

function fields(title, given) {
  if (!given.length) return [];
  return [make("h3", { text: title }), make("dl", { class: "fields" }, given.map((field) => make("div", { class: "said" },
    make("dt", {}, make("code", { text: field.name }), make("span", { class: "small", text: ` ${field.type}${field.required ? ", required" : ""}` })),
    make("dd", { text: field.about }))))];
}

function neighbourhood(node) {
  const lines = draw("svg", { class: "lines", "aria-hidden": "true", focusable: "false" });
  const here = make("div", { class: `here box-of ${node.kind}` }, make("strong", {}, breaking(short(node.label, node))));
  const graph = make("div", { class: "graph" }, lines);
  for (const side of SIDES) {
    const lanes = node.groups.filter((group) => group.side === side).map((group) => lane(group, node, () => connect(graph, lines, here)));
    graph.append(make("div", { class: `side at-${side}` }, side === "here" ? here : lanes));
  }
  if (!node.groups.length) graph.append(make("p", { class: "small", text: "Nothing is beside it." }));
  resized?.disconnect();
  resized = new ResizeObserver(() => connect(graph, lines, here));
  resized.observe(graph);
  return make("div", { class: "around" }, graph, legend(node));
}

function lane(group, node, changed) {
  const list = make("ul", {});
  const show = (most) => list.replaceChildren(...group.items.slice(0, most).map((one) => neighbour(one, group.side, node)));
  show(FEW);
  const more = group.items.length > FEW && make("button", { type: "button", class: "more", text: `${count(group.items.length - FEW, "more")}`.replace(/s$/, ""), on: { click: () => {
    const at = list.children.length;
    show(group.items.length);
    more.remove();
    changed();
    list.children[at].querySelector("a").focus();
  } } });
  const rest = group.total > group.items.length && make("p", { class: "small", text: `The first ${group.items.length} of ${group.total.toLocaleString("en")}.` });
  return make("section", { class: "lane" }, make("h4", { text: group.total > 1 ? `${group.title} (${group.total.toLocaleString("en")})` : group.title }), list, more, rest);
}

/** The name of a tool without that of the agent that the page is about anyway. */
function short(label, node) {
  const agent = `${node.kind === "agent" ? node.label : node.owner?.label}/`;
  return label.startsWith(agent) ? label.slice(agent.length) : label;
}

function neighbour(one, side, node) {
  const box = make("li", { class: `box-of ${one.kind}`, "data-relation": one.relation, "data-side": side, title: one.about || undefined },
    walk({ ...one, label: short(one.label, node) }, { "aria-label": one.label }), one.words && make("span", { class: "small", title: one.words, text: one.words }));
  if (one.unreviewed) box.dataset.unreviewed = "";
  return box;
}

/** Lines from the node to its neighbours, behind the boxes; a dependency points at what is needed. */
function connect(graph, lines, here) {
  const ground = graph.getBoundingClientRect();
  lines.setAttribute("width", ground.width);
  lines.setAttribute("height", ground.height);
  const heads = draw("defs", {}, ...Object.keys(MEANINGS).map((kind) => draw("marker", { id: `to-${kind}`, class: kind, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" }))));
  const drawn = [], stacked = getComputedStyle(graph).gridTemplateColumns.split(" ").length === 1;
  // Above and below, rows stand in each other's way: one line leads to the heading of the whole group.
  const groups = [...graph.querySelectorAll(".side:is(.at-above, .at-below) .lane")].map((one) => [one.querySelector("h4"), one.querySelector("li")]);
  const boxes = stacked ? [...graph.querySelectorAll("li.box-of")].map((one) => [one, one]) : [...groups, ...[...graph.querySelectorAll(".side:is(.at-before, .at-after) li.box-of")].map((one) => [one, one])];
  for (const [box, of] of boxes) {
    const { relation, side } = of.dataset;
    const [from, to] = side === "before" ? [box, here] : [here, box];
    const path = draw("path", { class: `edge ${relation}${"unreviewed" in of.dataset ? " unreviewed" : ""}`, d: curve(from.getBoundingClientRect(), to.getBoundingClientRect(), ground, { stacked, level: side === "before" || side === "after" }) });
    if (relation in MEANINGS) path.setAttribute("marker-end", `url(#to-${relation})`);
    drawn.push(path);
  }
  lines.replaceChildren(heads, ...drawn);
}

function curve(from, to, ground, { stacked, level }) {
  const middle = (box) => box.top + box.height / 2 - ground.top;
  const aside = !stacked && level && (from.right < to.left || to.right < from.left);
  if (aside) {
    const right = from.right < to.left;
    const x1 = (right ? from.right : from.left) - ground.left, x2 = (right ? to.left : to.right) - ground.left, bend = (x2 - x1) / 2;
    return `M${x1} ${middle(from)}C${x1 + bend} ${middle(from)} ${x2 - bend} ${middle(to)} ${x2} ${middle(to)}`;
  }
  if (stacked) {
    const x = from.left - ground.left, bend = Math.min(22, 10 + Math.abs(middle(to) - middle(from)) / 40);
    return `M${x} ${middle(from)}C${x - bend} ${middle(from)} ${x - bend} ${middle(to)} ${x} ${middle(to)}`;
  }
  const down = from.top < to.top;
  const x1 = from.left + from.width / 2 - ground.left, x2 = to.left + to.width / 2 - ground.left;
  const y1 = (down ? from.bottom : from.top) - ground.top, y2 = (down ? to.top : to.bottom) - ground.top, bend = (y2 - y1) / 2;
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function legend(node) {
  const used = new Set(node.groups.flatMap((group) => group.items.map((item) => item.relation)));
  const kinds = Object.entries(MEANINGS).filter(([kind]) => used.has(kind));
  return kinds.length > 0 && make("ul", { class: "key small" }, kinds.map(([kind, meaning]) =>
    make("li", {}, draw("svg", { width: 28, height: 10, "aria-hidden": "true" }, draw("path", { class: `edge ${kind}`, d: "M0 5h28" })), meaning)));
}

async function lookInto(place, id) {
  place.replaceChildren(make("h3", { text: "Findings" }), make("p", { class: "small", text: "Looking for what is wrong…" }));
  try {
    const found = await ask("findings", { id }, "findings");
    const list = found.length ? make("ul", {}, found.map((one) => make("li", {},
      make("span", { class: `badge ${one.severity}`, text: one.severity }), ` ${one.rule}: ${one.message}`))) : make("p", { text: "Nothing is wrong with it." });
    place.replaceChildren(make("h3", { text: found.length ? `Findings (${found.length})` : "Findings" }), list);
  } catch (error) {
    if (!(error instanceof Overtaken)) place.replaceChildren(make("h3", { text: "Findings" }), make("p", { class: "error", text: error.message }));
  }
}
