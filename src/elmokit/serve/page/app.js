// The frame of the page: which view is shown, which model is used, light or dark; and the address.
//
// A view is a module with a function that gets the app and returns { root, open(parameters) }. What a
// view shows is in the address after the #, so that a link shows the same again.

import { h, announce, number } from "./dom.js";
import { themeChanged } from "./colors.js";
import { openSource } from "./source.js";

const VIEWS = ["sentence", "uses", "guess", "neighbors", "tasks", "network"];

class App {
  #views = new Map();
  #redraw = new Set();
  #current = null;

  constructor(source, info) {
    this.source = source;
    this.info = info;
    this.model = info.models[0];
    this.#chooseModel();
    this.#chooseTheme();
    document.getElementById("about").replaceChildren(...about(info, this.model));
    addEventListener("hashchange", () => this.navigate(true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** Show what the address says. */
  async navigate(moved = false) {
    const [name, query] = location.hash.slice(1).split("?");
    if (name === "main") return;
    const id = VIEWS.includes(name) ? name : "sentence";
    const parameters = new URLSearchParams(query ?? "");
    const wanted = this.info.models.find((model) => model.name === parameters.get("model"));
    if (wanted) this.#useModel(wanted);
    if (!this.#views.has(id)) {
      const module = await import(`./views/${id}.js`);
      this.#views.set(id, module.createView(this));
    }
    const view = this.#views.get(id);
    const changed = this.#current !== id;
    this.#current = id;
    document.getElementById("welcome")?.remove();
    if (changed) document.getElementById("main").replaceChildren(view.root);
    for (const link of document.querySelectorAll("nav a")) {
      const here = link.hash === `#${id}`;
      here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
      if (here && changed) link.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    const heading = view.root.querySelector("h1");
    document.title = `${heading.textContent} · elmo`;
    if (moved && changed) {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    await view.open(parameters);
    document.body.dataset.ready = id;
  }

  /** Put what a view shows into the address; what is undefined or empty is left out. */
  remember(view, parameters) {
    if (this.#current !== view) return;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters))
      if (value !== undefined && value !== null && value !== "") query.set(name, value);
    if (this.model !== this.info.models[0]) query.set("model", this.model.name);
    const text = query.toString();
    history.replaceState(null, "", `#${view}${text ? `?${text}` : ""}`);
  }

  /** Call a function whenever colors have changed. */
  onRedraw(action) {
    this.#redraw.add(action);
  }

  redraw() {
    themeChanged();
    for (const action of this.#redraw) action();
  }

  /** Names of the layers of the model, as people know them. */
  get layerNames() {
    return Array.from({ length: this.model.layers }, (_, j) => (j === 0 ? "Characters" : `LSTM ${j}`));
  }

  #useModel(model) {
    this.model = model;
    const select = document.querySelector("#model-choice select");
    select.value = model.name;
    document.getElementById("about").replaceChildren(...about(this.info, model));
  }

  #chooseModel() {
    const label = document.getElementById("model-choice");
    const select = label.querySelector("select");
    select.append(...this.info.models.map((model) => h("option", {}, model.name)));
    label.hidden = this.info.models.length < 2;
    select.addEventListener("change", () => {
      this.#useModel(this.info.models.find((model) => model.name === select.value));
      const [view, query] = location.hash.slice(1).split("?");
      const parameters = new URLSearchParams(query ?? "");
      parameters.set("model", select.value);
      location.hash = `${view || "sentence"}?${parameters}`;
    });
  }

  #chooseTheme() {
    const button = document.getElementById("theme");
    const names = { "": "as the system", light: "light", dark: "dark" };
    const apply = (theme) => {
      theme ? (document.documentElement.dataset.theme = theme) : delete document.documentElement.dataset.theme;
      button.setAttribute("aria-label", `Color theme: ${names[theme]}`);
      button.title = `Color theme: ${names[theme]}`;
      this.redraw();
    };
    let theme = localStorage.getItem("elmo-theme") ?? "";
    if (!(theme in names)) theme = "";
    apply(theme);
    button.addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
      theme = order[(order.indexOf(theme) + 1) % 3];
      theme ? localStorage.setItem("elmo-theme", theme) : localStorage.removeItem("elmo-theme");
      apply(theme);
      announce(`Color theme: ${names[theme]}`);
    });
  }
}

function about(info, model) {
  const millions = model.parameters / 1e6;
  const size = millions < 0.1 ? number(model.parameters) : `${millions.toFixed(millions < 10 ? 1 : 0)} million`;
  return [
    `elmokit ${info.version} · ${model.name}: ${model.layers} layers of ${model.dim} numbers, ${size} parameters. `,
    info.offline ? "The model runs in this browser; nothing you type leaves it." : "What you type goes to the server that sent this page, and nowhere else.",
  ];
}

try {
  const source = await openSource();
  const app = new App(source, await source.info());
  await app.navigate();
} catch (error) {
  document.getElementById("main").append(h("p", { class: "error", role: "alert" }, error.message));
  throw error;
}
