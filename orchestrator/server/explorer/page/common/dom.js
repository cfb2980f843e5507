// Elements, links and announcements. Whatever comes from the server goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: make("p", { class: "small", text: "..." }, child, ...). */
export function make(tag, { text, class: kind, on = {}, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) made.setAttribute(name, value);
  for (const [event, act] of Object.entries(on)) made.addEventListener(event, act);
  made.append(...children.flat().filter(Boolean));
  return made;
}

/** An element of a drawing. */
export function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Where the page is: { view, given }, from "#/search?q=...&node=...". */
export function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "start", given: new URLSearchParams(query) };
}

/** The address of a view. */
export function address(view, given = {}) {
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "" && value != null));
  return query.size ? `#/${view}?${query}` : `#/${view}`;
}

/** The question that the page shows, with its budget. */
export function question() {
  const { view, given } = place();
  return view === "search" ? { q: given.get("q"), agents: given.get("agents"), tools: given.get("tools") } : {};
}

/** A link to an agent, a tool or a capability, beside the question that the page shows. */
export function walk(link, more = {}) {
  const kind = link.kind === "capability" ? "capability" : "node";
  const href = address("search", { ...question(), [kind]: link.id });
  return make("a", { class: `to ${link.kind}`, href, "data-id": link.id, "aria-label": link.label, ...more }, breaking(link.label));
}

/** A name that may be broken where its words meet; what holds it needs a label, lest the parts be read one by one. */
export function breaking(name) {
  return name.split(/(?<=[_/.:-])/).flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));
}

/** Says something to those who listen to the page. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** Shows what went wrong; nothing takes it away. */
export function alert(...what) {
  document.getElementById("alert").replaceChildren(...what);
}

/** "1 tool", "2 tools". */
export function count(n, word) {
  return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}

/** A table with a caption; cells are texts or elements, numbers stand to the right. */
export function table(caption, heads, rows) {
  const cell = (value, tag) => {
    const numeric = typeof value === "number";
    const made = make(tag, { class: numeric ? "number" : undefined, scope: tag === "th" ? "col" : undefined });
    made.append(numeric ? round(value) : (value ?? ""));
    return made;
  };
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", { text: caption }),
      make("thead", {}, make("tr", {}, heads.map((head) => cell(head, "th")))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((value) => cell(value, "td")))))));
}

/** A term with what is said of it; a difference or a schema folds away. */
export function said({ term, text, detail }, open = false) {
  return make("div", { class: "said" },
    make("dt", { text: term }),
    make("dd", {}, make("p", { text }), detail && fold("Show the difference", make("pre", { text: detail, tabindex: "0" }), open)));
}

/** Something folded away under a line. */
export function fold(summary, inner, open = false) {
  const made = make("details", {}, make("summary", { text: summary }), inner);
  made.open = open;
  return made;
}

function round(value) {
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(value < 0.1 ? 3 : 2);
}
