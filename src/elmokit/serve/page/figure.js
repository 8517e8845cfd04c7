// A figure with a title, its exports (SVG, PNG, JSON), and the same numbers as a table.

import { h, announce } from "./dom.js";
import { svgText, svgToPng, save } from "./export.js";

/**
 * Make a figure.
 * @param {object} parts
 * @param {string} parts.title what the figure shows
 * @param {string} parts.name beginning of the names of exported files
 * @param {() => object} parts.json the numbers
 * @param {() => HTMLElement} [parts.table] the numbers as a table
 * @param {boolean} [parts.drawn] whether there is an SVG to export
 * @returns {HTMLElement & {draw: (svg: SVGElement) => void, rename: (title: string) => void}}
 */
export function createFigure({ title, name, json, table, drawn = true }) {
  const heading = h("h2", {}, title);
  const place = h("div", { class: "drawing" });
  const current = () => place.querySelector("svg");
  const file = (suffix) => `elmo-${typeof name === "function" ? name() : name}.${suffix}`;
  const button = (label, action) =>
    h("button", { type: "button", "aria-label": `Save as ${label}`, onclick: action }, label);
  const exports = h(
    "div",
    { class: "exports" },
    "Save",
    drawn ? button("SVG", () => save(file("svg"), "image/svg+xml", svgText(current()))) : null,
    drawn
      ? button("PNG", async () => save(file("png"), "image/png", await svgToPng(current())))
      : null,
    button("JSON", () => save(file("json"), "application/json", JSON.stringify(json(), null, 1))),
    button("Link", copyLink),
  );
  exports.lastChild.setAttribute("aria-label", "Copy a link to this view");
  const rows = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" });
  const details = h("details", { class: "as-table" }, h("summary", {}, "The numbers as a table"), rows);
  const refresh = () => details.open && rows.replaceChildren(table());
  details.addEventListener("toggle", refresh);
  const element = h("figure", {}, h("figcaption", {}, heading, exports), place, table ? details : null);
  element.draw = (...svg) => {
    place.replaceChildren(...svg);
    if (table) refresh();
  };
  element.rename = (text) => (heading.textContent = text);
  element.place = place;
  return element;
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    announce("Link copied");
    this.textContent = "Copied";
    setTimeout(() => (this.textContent = "Link"), 1200);
  } catch {
    prompt("A link to this view:", location.href);
  }
}

/** A table of plain cells; numbers are aligned to the right. */
export function plainTable(caption, head, rows) {
  const cell = (tag, value, first) =>
    h(tag, { class: typeof value === "number" ? "number" : undefined, scope: tag === "th" ? (first ? "row" : "col") : undefined },
      typeof value === "number" ? String(value).replace("-", "−") : value);
  return h(
    "table",
    {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => cell(i ? "td" : "th", value, true))))),
  );
}
