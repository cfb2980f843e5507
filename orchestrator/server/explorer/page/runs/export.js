// A run as a link, and as a page of its own.

import { announce, make } from "../common/dom.js";

/** The buttons. */
export function exports(run, element) {
  if (!run.steps.length) return [];
  const name = run.request.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40).replace(/^-+|-+$/g, "") || "run";
  const button = (text, click) => make("button", { type: "button", class: "quiet", text, on: { click: () => click().catch((error) => announce(error.message)) } });
  return [
    button("Copy link", async () => { await navigator.clipboard.writeText(location.href); announce("The link is copied"); }),
    button("HTML page", async () => save(`${name}.html`, await page(run, element))),
  ];
}

async function style(name) {
  const answer = await fetch(`styles/${name}`);
  return answer.text();
}

/** The run as one file that needs nothing else: no script, no request. */
async function page(run, element) {
  const made = document.implementation.createHTMLDocument(run.request);
  const charset = made.createElement("meta"), policy = made.createElement("meta");
  const css = `${await style("page.css")}\n${await style("run.css")}\n${await style("drawing.css")}`;
  charset.setAttribute("charset", "utf-8");
  policy.setAttribute("http-equiv", "Content-Security-Policy");
  policy.setAttribute("content", "default-src 'none'; style-src 'unsafe-inline'");
  const copy = element.cloneNode(true);
  for (const one of copy.querySelectorAll("button, textarea, input, .questions")) one.remove();
  for (const one of copy.querySelectorAll("details")) one.open = true;
  for (const one of copy.querySelectorAll("a")) one.removeAttribute("href");
  for (const one of copy.querySelectorAll("[tabindex]")) one.removeAttribute("tabindex");
  made.head.prepend(charset, policy);
  const main = made.createElement("main");
  main.append(made.adoptNode(copy));
  made.body.append(main);
  // The style is added as text: this page's own policy would refuse it in a document made here.
  return `<!doctype html>\n${new XMLSerializer().serializeToString(made.documentElement).replace("</head>", () => `<style>${css}</style></head>`)}`;
}

function save(name, content) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type: "text/html" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(`Saved as ${name}`);
}
