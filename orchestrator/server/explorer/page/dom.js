// Elements, links and announcements. Whatever comes from the server goes in as text, never as markup.

/** An element: make("p", { class: "small", text: "..." }, child, ...); what is false or undefined is left out. */
export const make = (tag, given = {}, ...children) => filled(document.createElement(tag), given, children);

/** An element of a drawing. */
export const draw = (tag, given = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);

function filled(element, { text, on = {}, ...attributes }, children) {
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) element.setAttribute(name, value);
  for (const [event, act] of Object.entries(on)) element.addEventListener(event, act);
  element.append(...children.flat(3).filter(Boolean));
  return element;
}

/** A button. */
export const button = (text, click, more = {}) => make("button", { type: "button", text, on: { click }, ...more });

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
export const breaking = (name) => name.split(/(?<=[_/.:-])/).flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));

/** Says something to those who listen to the page. */
export const announce = (text) => { document.getElementById("status").textContent = text; };

/** Shows what went wrong, until the next call. */
export function alert(text = "") {
  document.getElementById("alert").replaceChildren(...(text ? [make("p", { text })] : []));
}

/** "1 tool", "2 tools". */
export const count = (n, word) => `${n.toLocaleString("en")} ${n === 1 ? word : word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`}`;

/** A table with a caption; cells are texts or elements, numbers stand to the right. */
export function table(caption, heads, rows) {
  const cell = (value) => make("td", { class: typeof value === "number" && "number" }, typeof value === "number" ? round(value) : value);
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", { text: caption }),
      make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col", text })))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell))))));
}

const round = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(value < 0.1 ? 3 : 2));

/** A term with what is said of it; a difference folds away. */
export function said({ term, text, detail }) {
  return make("div", { class: "said" }, make("dt", { text: term }),
    make("dd", {}, make("p", { text }), detail && fold("Show the difference", make("pre", { text: detail, tabindex: "0" }))));
}

/** Something folded away under a line. */
export function fold(summary, inner, open = false) {
  const made = make("details", {}, make("summary", { text: summary }), inner);
  made.open = open;
  return made;
}

/** A field that filters a list: `act` is called when a person stops typing. */
export function filterField(act) {
  let waiting = 0;
  return make("input", { type: "search", id: "words", autocomplete: "off", on: { input: () => { clearTimeout(waiting); waiting = setTimeout(act, 200); } } });
}
