// Which view is shown, signing in, and where the focus goes.

import { showSearch } from "./catalog.js";
import { address, alert, announce, button, count, make, place } from "./dom.js";
import { forgetMap } from "./map.js";
import { showReview } from "./review.js";
import { leave, showRuns, showStart } from "./runs/runs.js";
import { SignIn, TOKEN, ask, failed, storeKey } from "./server.js";

const VIEWS = { start: ["Ask", showStart], search: ["Search", showSearch], runs: ["Runs", showRuns], review: ["Review", showReview] };
let overview = null;

async function show() {
  const { view, given } = place();
  if (location.hash === "#main") return;
  const name = Object.hasOwn(VIEWS, view) ? view : "nowhere", [title, shown] = VIEWS[name] ?? ["Nothing here", showNowhere];
  document.body.dataset.shows = name;
  leave();
  for (const link of document.querySelectorAll("[data-view]"))
    link.dataset.view === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  document.title = `${given.get("q") || given.get("node") || given.get("capability") || title} - Callsheet`;
  alert();
  try {
    overview ??= tell(await ask("overview"));
    await shown(document.getElementById("view"), given, overview);
  } catch (error) {
    if (error instanceof SignIn) signIn(error.message);
    else failed(error);
  }
}

/** What an address shows that no view has. */
function showNowhere(view) {
  const shown = location.hash.replace(/^#\/?/, "");
  view.replaceChildren(make("section", {}, make("h1", { text: "Nothing here" }), make("p", { class: "words", text: `There is no page "${shown}".` }),
    make("ul", { class: "plain" }, Object.entries(VIEWS).map(([name, [title]]) => make("li", {}, make("a", { href: address(name), text: title }))))));
  announce("Nothing here");
}

function tell(catalog) {
  const numbers = [count(catalog.agents, "agent"), count(catalog.tools, "tool"), catalog.skills && count(catalog.skills, "skill"), count(catalog.dependencies, "dependency"), `${catalog.inferred.toLocaleString("en")} inferred`, catalog.observed && `${catalog.observed.toLocaleString("en")} observed`].filter(Boolean).join(", ");
  document.getElementById("counts").textContent = catalog.policy ? `${numbers}; ${catalog.policy}` : numbers;
  const review = document.querySelector("[data-view=review]");
  review.textContent = catalog.quarantined ? `Review (${catalog.quarantined.toLocaleString("en")})` : "Review";
  review.setAttribute("aria-label", catalog.quarantined ? `Review, ${count(catalog.quarantined, "change")} in quarantine` : "Review");
  const out = sessionStorage.getItem(TOKEN) !== null && button("Sign out", () => { sessionStorage.removeItem(TOKEN); location.reload(); });
  document.getElementById("user").replaceChildren(...[catalog.user && `Signed in as ${catalog.user}`, out].filter(Boolean));
  return catalog;
}

function signIn(why) {
  overview = null;
  forgetMap();
  const token = make("input", { id: "token", type: "password", autocomplete: "off", required: "", spellcheck: "false" });
  const enter = (event) => { event.preventDefault(); sessionStorage.setItem(TOKEN, token.value.trim()); show(); };
  document.getElementById("view").replaceChildren(
    make("form", { class: "signin", on: { submit: enter } },
      make("h1", { text: "Who are you?" }),
      make("p", { text: `The server shows each user what that user may see. It says: ${why}` }),
      make("label", { for: "token", text: "Access token" }), token, make("button", { text: "Sign in" }),
      make("p", { class: "small", text: "It is sent as a bearer token and kept until this tab is closed." })));
  announce("The server asks who you are");
  token.focus();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
window.addEventListener("hashchange", show);
document.addEventListener("decided", async () => {
  forgetMap();
  overview = tell(await ask("overview"));
});
document.addEventListener("keydown", (event) => {
  const question = document.getElementById("q") ?? document.getElementById("question");
  if (event.key !== "/" || event.target.closest?.("input, textarea, select") || !question) return;
  event.preventDefault();
  question.focus();
  question.select();
});
storeKey();
show();
