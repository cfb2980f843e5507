// A change of a server: the accepted and the present definition side by side, with what changed marked.

import { make } from "../common/dom.js";

const KINDS = { new: "New tool", suspect: "Suspect tool", changed: "Changed tool", removed: "Removed tool", command: "Other command", about: "Other description" };

export function changeCard(one, { may, decide }) {
  const accept = one.digest && may && make("button", { type: "button", class: "main", "aria-label": `Accept ${one.label}`, text: one.kind === "removed" ? "Accept the removal" : "Accept what it is now", on: { click: () => decide({ accept: true }) } });
  return [
    make("h3", {}, make("span", { class: `badge ${one.quarantines ? "warning" : ""}`, text: KINDS[one.kind] ?? one.kind }), " ", make("code", { text: one.label })),
    make("p", { text: `${one.told}.` }),
    one.digest ? sides(one) : make("p", { class: "note", text: "This definition is too long to be shown here, so it cannot be accepted here: use callsheet approve." }),
    accept && make("div", { class: "row" }, accept, make("span", { class: "small", text: one.quarantines ? "Do nothing to leave it in quarantine." : "" })),
  ];
}

function sides(one) {
  const columns = [["Accepted", one.lines.some(([before]) => before !== null)], ["Now", one.lines.some(([, after]) => after !== null)]];
  const shown = columns.flatMap(([, has], i) => (has ? [i] : []));
  const heads = shown.map((i) => make("th", { scope: "col", role: "columnheader", text: columns[i][0] }));
  const rows = one.lines.map((pair) => row(pair, shown));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Definition of ${one.label}` },
    make("table", { class: `sides ${shown.length === 1 ? "single" : ""}`, role: "table" },
      make("caption", { class: "unseen", text: `${one.label}: ${shown.map((i) => columns[i][0]).join(" and ")}` }),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, heads)), make("tbody", { role: "rowgroup" }, rows)));
}

function row([before, after], shown) {
  if (before === null && after === null)
    return make("tr", { class: "gap", role: "row" }, make("td", { role: "cell", colspan: String(shown.length), text: "… equal lines …" }));
  const equal = before === after;
  const cell = (text, tag, other) => make("td", { role: "cell", class: equal ? "equal" : text === null ? "none" : tag }, text !== null && (equal ? text : make(tag, {}, marked(text, other))));
  const cells = [() => cell(before, "del", after), () => cell(after, "ins", before)];
  return make("tr", { class: equal ? "equal" : "changed", role: "row" }, shown.map((i) => cells[i]()));
}

/** A changed line, with the characters that its other side does not have marked. */
function marked(text, other) {
  if (other === null) return text;
  const mine = [...text], theirs = [...other], most = Math.min(mine.length, theirs.length);
  let start = 0, end = 0;
  while (start < most && mine[start] === theirs[start]) start += 1;
  while (end < most - start && mine.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  if (!start && !end) return text;
  return [mine.slice(0, start).join(""), make("mark", { text: mine.slice(start, mine.length - end).join("") }), mine.slice(mine.length - end).join("")];
}
