// Where agents and tools stand on the map: tools in a disc for each agent, agents near those that they need.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, packSiblings } from "../library/graph.js";

const STEP = 9, TURN = Math.PI * (3 - Math.sqrt(5));
/** The origin of an edge from a skill to a tool. */
export const NAMED = 3;

/** Discs and points for what the server sent; the same for the same catalog. */
export function laidOut({ agents, tools, edges, skills, labels }) {
  const label = (id) => (Object.hasOwn(labels, id) ? labels[id] : id);
  const discs = agents.map((id, number) => ({ id, label: label(id), number, tools: [] }));
  const points = tools.map(([name, agent, core], number) => ({ id: `${agents[agent]}/${name}`, name: short(label(`${agents[agent]}/${name}`), label(agents[agent])), agent, core: Boolean(core), number, needs: 0 }));
  // A skill stands in a small disc of its own, tied to the tools that it names.
  const ties = [...edges];
  for (const [id, named] of skills) {
    const point = { id, name: label(id), agent: discs.length, skill: true, number: points.length, needs: 0 };
    discs.push({ id, label: label(id), number: discs.length, skill: true, tools: [] });
    ties.push(...named.map((tool) => [points.length, tool, NAMED]));
    points.push(point);
  }
  for (const point of points) discs[point.agent].tools.push(point);
  const links = new Map();
  for (const [from, to, origin] of ties) {
    points[to].needs += 1;
    const a = points[from].agent, b = points[to].agent, key = a < b ? `${a} ${b}` : `${b} ${a}`;
    if (a !== b) links.set(key, { source: Math.min(a, b), target: Math.max(a, b), n: (links.get(key)?.n ?? 0) + 1, origins: new Set([...(links.get(key)?.origins ?? []), origin]) });
  }
  discs.forEach((disc, i) => {
    // What many tools need stands in the middle.
    disc.tools.sort((a, b) => b.needs - a.needs || a.number - b.number);
    disc.r = STEP * Math.sqrt(disc.tools.length) + 11;
    const far = 9 * Math.sqrt(i + 0.5) * Math.sqrt(points.length / Math.max(1, discs.length) + 4);
    Object.assign(disc, { x: far * Math.cos(i * TURN) * 1.9, y: far * Math.sin(i * TURN) });
  });
  settle(discs, [...links.values()]);
  for (const disc of discs) disc.tools.forEach((point, i) => {
    const far = disc.tools.length === 1 ? 0 : STEP * Math.sqrt(i + 0.4);
    Object.assign(point, { x: disc.x + far * Math.cos(i * TURN), y: disc.y + far * Math.sin(i * TURN) });
  });
  return { discs, points, edges: ties.map(([from, to, origin]) => ({ from: points[from], to: points[to], origin })), links: [...links.values()].map(({ source, target, origins }) => ({ from: discs[source], to: discs[target], origins: [...origins] })) };
}

const MOST = 200;

/** Up to so many agents find their places by forces; more are packed, those that are linked one after the other. */
function settle(discs, links) {
  if (discs.length > MOST) { pack(discs, links); return; }
  const near = links.map((link) => ({ ...link }));
  const forces = forceSimulation(discs).stop()
    .force("apart", forceCollide((disc) => disc.r + 7).iterations(3))
    .force("linked", forceLink(near).distance((link) => link.source.r + link.target.r + 22).strength((link) => Math.min(0.4, 0.08 + link.n * 0.03)))
    .force("x", forceX(0).strength(0.02)).force("y", forceY(0).strength(0.11));
  forces.force("away", forceManyBody().strength((disc) => -disc.r * 4).distanceMax(420));
  const ticks = 220;
  forces.alphaDecay(1 - 0.001 ** (1 / ticks));
  for (let i = 0; i < ticks; i += 1) forces.tick();
  // At last nothing may lie over another.
  forces.force("linked", null).force("x", null).force("y", null).force("away", null).alpha(1).alphaDecay(0).velocityDecay(0.6);
  forces.force("apart").iterations(2);
  for (let i = 0; i < 36; i += 1) forces.tick();
}

function pack(discs, links) {
  const near = new Map(discs.map((disc) => [disc, []])), seen = new Set(), order = [];
  for (const { source, target, n } of links) { near.get(discs[source]).push([n, discs[target]]); near.get(discs[target]).push([n, discs[source]]); }
  for (const start of [...discs].sort((a, b) => near.get(b).length - near.get(a).length || b.r - a.r || a.number - b.number)) {
    const waiting = [start];
    for (let disc = waiting.shift(); disc; disc = waiting.shift()) {
      if (seen.has(disc)) continue;
      seen.add(disc);
      order.push(disc);
      waiting.push(...near.get(disc).sort((a, b) => b[0] - a[0]).map(([, other]) => other));
    }
  }
  const circles = packSiblings(order.map((disc) => ({ disc, r: disc.r + 4 })));
  for (const { disc, x, y } of circles) Object.assign(disc, { x: x * 1.7, y });
}

function short(label, agent) {
  return label.startsWith(`${agent}/`) ? label.slice(agent.length + 1) : label;
}
