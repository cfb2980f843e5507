// Paints the map on a canvas: what is far away is a disc, what is near has its name.

const FONT = '"DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace', SANS = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const FULL = Math.PI * 2;

/** The colours of the page, light or dark. */
export function colours(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(["paper", "panel", "ink", "faint", "rule", "accent", "mark", "warn", "agent", "tool", "skill"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Paints `world` at { x, y, k }; `lit` is the set of points that stand out, or null; `active` are called just now. */
export function paint(ink, world, { width, height, at, colour, hidden, lit, active, hover, scale }) {
  ink.setTransform(scale, 0, 0, scale, 0, 0);
  ink.clearRect(0, 0, width, height);
  ink.setTransform(scale * at.k, 0, 0, scale * at.k, scale * at.x, scale * at.y);
  const view = { left: -at.x / at.k, top: -at.y / at.k, right: (width - at.x) / at.k, bottom: (height - at.y) / at.k };
  const inView = (x, y, r) => x + r > view.left && x - r < view.right && y + r > view.top && y - r < view.bottom;
  const discs = world.discs.filter((disc) => inView(disc.x, disc.y, disc.r));
  shapes(ink, discs, at, colour);
  lines(ink, world, at, colour, hidden, lit, hover, inView);
  dots(ink, discs, at, colour, lit);
  rings(ink, active, at, colour);
  ink.setTransform(scale, 0, 0, scale, 0, 0);
  names(ink, discs, at, colour, lit, active, inView, width);
}

function shapes(ink, discs, at, colour) {
  ink.beginPath();
  for (const disc of discs) { ink.moveTo(disc.x + disc.r, disc.y); ink.arc(disc.x, disc.y, disc.r, 0, FULL); }
  ink.fillStyle = colour.mark;
  ink.globalAlpha = 0.75;
  ink.fill();
  ink.globalAlpha = 1;
  ink.strokeStyle = colour.rule;
  ink.lineWidth = 1 / at.k;
  ink.stroke();
}

function lines(ink, world, at, colour, hidden, lit, hover, inView) {
  const near = world.edges.length < 2500 || at.k > 0.9, dim = lit ? 0.12 : 1;
  if (!near) {
    ink.beginPath();
    for (const link of world.links) if (!link.origins.every((origin) => hidden.has(origin))) curve(ink, link.from, link.to);
    ink.strokeStyle = colour.accent;
    ink.globalAlpha = Math.max(0.05, Math.min(0.3, 160 / world.links.length)) * (lit ? 0.3 : 1);
    ink.lineWidth = 0.9 / at.k;
    ink.stroke();
  }
  if (near) for (const origin of [0, 1, 2, 3]) {
    if (hidden.has(origin)) continue;
    const crowd = Math.min(1, 500 / (world.edges.length + 1));
    ink.beginPath();
    for (const edge of world.edges) if (edge.origin === origin && (inView(edge.from.x, edge.from.y, 60) || inView(edge.to.x, edge.to.y, 60))) curve(ink, edge.from, edge.to);
    style(ink, origin, at, colour);
    ink.globalAlpha = (0.22 + 0.45 * crowd) * dim;
    ink.stroke();
  }
  ink.setLineDash([]);
  if (hover) for (const edge of world.edges) {
    if ((edge.from !== hover && edge.to !== hover) || hidden.has(edge.origin)) continue;
    ink.beginPath();
    curve(ink, edge.from, edge.to);
    style(ink, edge.origin, at, colour);
    ink.lineWidth *= 1.8;
    ink.globalAlpha = 1;
    ink.stroke();
    ink.setLineDash([]);
  }
  ink.globalAlpha = 1;
}

function style(ink, origin, at, colour) {
  ink.strokeStyle = [colour.accent, colour.faint, colour.warn, colour.skill][origin];
  ink.lineWidth = [1.3, 1, 1.3, 1.3][origin] / at.k;
  ink.setLineDash([[], [5 / at.k, 4 / at.k], [1.5 / at.k, 3.5 / at.k], [7 / at.k, 2 / at.k]][origin]);
}

function curve(ink, from, to) {
  const dx = to.x - from.x, dy = to.y - from.y;
  ink.moveTo(from.x, from.y);
  ink.quadraticCurveTo(from.x + dx / 2 - dy * 0.16, from.y + dy / 2 + dx * 0.16, to.x, to.y);
}

function dots(ink, discs, at, colour, lit) {
  const least = 1.1 / at.k, groups = [[], [], [], []];
  for (const disc of discs) for (const point of disc.tools) groups[lit && !lit.has(point) ? 2 : point.skill ? 3 : point.core || lit ? 1 : 0].push(point);
  [colour.tool, colour.accent, colour.faint, colour.skill].forEach((fill, i) => {
    ink.fillStyle = fill;
    ink.globalAlpha = i === 2 ? 0.35 : 1;
    ink.beginPath();
    for (const point of groups[i]) {
      const r = Math.max(least, Math.min(4.2, 2.1 + 0.45 * Math.log2(1 + point.needs)));
      // Thousands of small squares cost less than one path of thousands of circles.
      if (r * at.k < 2.2) ink.fillRect(point.x - r, point.y - r, 2 * r, 2 * r);
      else { ink.moveTo(point.x + r, point.y); ink.arc(point.x, point.y, r, 0, FULL); }
    }
    ink.fill();
  });
  ink.globalAlpha = 1;
}

function rings(ink, active, at, colour) {
  ink.beginPath();
  for (const point of active) { ink.moveTo(point.x + 9 / at.k, point.y); ink.arc(point.x, point.y, 9 / at.k, 0, FULL); }
  ink.strokeStyle = colour.accent;
  ink.lineWidth = 2.5 / at.k;
  ink.stroke();
}

function names(ink, discs, at, colour, lit, active, inView, width) {
  const taken = [];
  const free = (x, y, w, h) => {
    if (taken.some((box) => x < box.x + box.w && x + w > box.x && y < box.y + box.h && y + h > box.y)) return false;
    taken.push({ x, y, w, h });
    return true;
  };
  const write = (text, x, y, fill, halo) => {
    ink.lineWidth = 3.5;
    ink.strokeStyle = halo;
    ink.strokeText(text, x, y);
    ink.fillStyle = fill;
    ink.fillText(text, x, y);
  };
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  ink.textAlign = "center";
  ink.font = `600 13px ${SANS}`;
  const ranked = [...discs].sort((a, b) => (lit ? share(b, lit) - share(a, lit) : 0) || b.tools.length - a.tools.length || a.number - b.number).slice(0, 400);
  for (const disc of ranked) {
    if (lit && !share(disc, lit)) continue;
    const label = cut(disc.label, 30), w = ink.measureText(label).width, x = at.x + disc.x * at.k, y = at.y + (disc.y - disc.r) * at.k - 10;
    const air = disc.r * at.k < 20 ? 34 : 3;
    if (free(x - w / 2 - air, y - 9 - air / 3, w + 2 * air, 18 + air / 1.5)) write(label, x, y, colour.ink, colour.panel);
  }
  if (at.k < 1.5 && !lit) return;
  ink.font = `11px ${FONT}`;
  ink.textAlign = "left";
  const named = active.size ? active : lit;
  let written = 0;
  for (const disc of discs) for (const point of disc.tools) {
    if ((named && !named.has(point)) || written > 400 || !inView(point.x, point.y, 10)) continue;
    const label = cut(point.name, 34), x = at.x + point.x * at.k, y = at.y + point.y * at.k, w = label.length * 6.7;
    const side = [x + 9, x - 9 - w].find((left) => left > 0 && left + w < width && free(left, y - 7, w, 14));
    if (side !== undefined) { write(label, side, y, colour.ink, colour.panel); written += 1; }
  }
}

function share(disc, lit) {
  return disc.tools.reduce((n, point) => n + lit.has(point), 0);
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
