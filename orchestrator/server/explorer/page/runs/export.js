// A run as a link, as a picture (SVG, PNG), and as a page of its own.

import { announce, draw, make } from "../common/dom.js";
import { usage } from "./run.js";

/** The buttons. */
export function exports(run, element) {
  if (!run.steps.length) return [];
  const name = run.request.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40).replace(/^-+|-+$/g, "") || "run";
  const button = (text, click) => make("button", { type: "button", class: "quiet", text, on: { click: () => click().catch((error) => announce(error.message)) } });
  return [
    button("Copy link", async () => { await navigator.clipboard.writeText(location.href); announce("The link is copied"); }),
    button("SVG", async () => save(`${name}.svg`, "image/svg+xml", text(await picture(run, element)))),
    button("PNG", async () => saved(`${name}.png`, await png(await picture(run, element)))),
    button("HTML page", async () => save(`${name}.html`, "text/html", await page(run, element))),
  ];
}

async function style(name) {
  const answer = await fetch(`styles/${name}`);
  return answer.text();
}

/** Request, usage, plan and timeline below each other, with their style. */
async function picture(run, element) {
  const drawn = [...element.querySelectorAll("svg.drawing")].map((one) => one.cloneNode(true));
  const width = Math.max(...drawn.map((one) => Number(one.getAttribute("width"))));
  const made = draw("svg", { class: "drawing", xmlns: "http://www.w3.org/2000/svg" }), css = draw("style");
  css.textContent = await style("drawing.css");
  made.append(css, draw("rect", { class: "paper", width: "100%", height: "100%" }), line("picture-title", 34, run.request, width / 9));
  const facts = run.usage ? [usage(run.usage), run.usage.cost.words] : [];
  facts.forEach((fact, i) => made.append(line("picture-fact", 56 + i * 18, fact, width / 6.6)));
  let y = 56 + facts.length * 20;
  for (const one of drawn) {
    one.setAttribute("x", String(16 + (width - Number(one.getAttribute("width"))) / 2));
    one.setAttribute("y", String(y));
    one.removeAttribute("style");
    y += Number(one.getAttribute("height")) + 24;
    made.append(one);
  }
  for (const [key, value] of Object.entries({ width: width + 32, height: y, viewBox: `0 0 ${width + 32} ${y}` })) made.setAttribute(key, String(value));
  return made;
}

function line(kind, y, content, room) {
  const made = draw("text", { class: kind, x: 16, y });
  made.textContent = content.length > room ? `${content.slice(0, room - 1)}…` : content;
  return made;
}

async function png(drawn) {
  const width = Number(drawn.getAttribute("width")), height = Number(drawn.getAttribute("height"));
  const address = URL.createObjectURL(new Blob([text(drawn)], { type: "image/svg+xml" }));
  try {
    const image = new Image(width, height);
    image.src = address;
    await image.decode();
    const canvas = make("canvas", { width: width * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
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
  return `<!doctype html>\n${text(made.documentElement).replace("</head>", () => `<style>${css}</style></head>`)}`;
}

function text(drawn) {
  return new XMLSerializer().serializeToString(drawn);
}

function save(name, type, content) {
  return saved(name, new Blob([content], { type }));
}

function saved(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(`Saved as ${name}`);
}
