// Elements of the page, made in one call each; and the few habits that all views share.

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element: h("button", { class: "chip", onclick }, "Text", child, …). */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  return fill(element, properties, children);
}

/** Make an SVG element, in the same way. */
export function s(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  return fill(element, properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value); // allowed by a strict CSP
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Say something to screen readers. */
export function announce(text) {
  const status = document.getElementById("status");
  if (status && status.textContent !== text) status.textContent = text;
}

/** Return a function that runs `action` once calls have stopped for some milliseconds. */
export function debounce(action, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/** Return a function that awaits promises and drops all answers but that of the last call. */
export function latest() {
  let newest = 0;
  return async (promise) => {
    const own = ++newest;
    const value = await promise;
    if (own !== newest) throw new Superseded();
    return value;
  };
}

/** The answer came too late: another question has been asked meanwhile. */
export class Superseded extends Error {}

/** Arrow keys move the focus among the buttons of a group; only one of them is a tab stop. */
export function arrowKeys(group, selector = "button") {
  group.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const items = [...group.querySelectorAll(selector)];
    const here = items.indexOf(document.activeElement);
    if (here < 0) return;
    let next = null;
    if (event.key in steps) next = items[here + steps[event.key]];
    if (event.key === "Home") next = items[0];
    if (event.key === "End") next = items.at(-1);
    if (event.key in steps || next) event.preventDefault();
    if (next) {
      for (const item of items) item.tabIndex = item === next ? 0 : -1;
      next.focus();
    }
  });
}

/** A row of choices of which one is chosen, as radio buttons. */
export function choices(label, options, chosen, onchange) {
  const name = `choice-${Math.random().toString(36).slice(2)}`;
  const inputs = options.map(([value, text]) => {
    const input = h("input", { type: "radio", name, value, onchange: () => onchange(value) });
    input.checked = value === chosen;
    return [input, text];
  });
  const element = h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, label),
    inputs.map(([input, text]) => h("label", {}, input, h("span", {}, text))),
  );
  element.choose = (value) => inputs.forEach(([input]) => (input.checked = input.value === value));
  return element;
}

/** A sentence with one word marked, as a fragment. */
export function marked(words, position) {
  const parts = words.map((word, i) => (i === position ? h("strong", {}, word) : word));
  return parts.flatMap((part, i) => (i && needsSpace(words[i - 1], words[i]) ? [" ", part] : [part]));
}

/** Whether there is a space between two words of the Penn Treebank in running text. */
export function needsSpace(before, after) {
  if (/^(?:[.,;:!?%)\]}’']|n['’]t|['’](?:s|d|m|ll|re|ve)|''|…)/i.test(after)) return false;
  return !/^[([{$`]+$/.test(before);
}

/** Words as running text. */
export function joined(words) {
  return words.map((word, i) => (i && needsSpace(words[i - 1], word) ? ` ${word}` : word)).join("");
}

export const percent = (value) =>
  value >= 0.1 ? `${(100 * value).toFixed(0)} %`
  : value >= 0.001 ? `${(100 * value).toFixed(value >= 0.01 ? 1 : 2)} %`
  : value > 0 ? `${(100 * value).toPrecision(1).replace(/e-(\d+)/, " × 10⁻$1")} %`.replace(/10⁻(\d+)/, (_, n) => `10${superscript(-n)}`)
  : "0 %";

function superscript(number) {
  return String(number).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"["0123456789".indexOf(c)] ?? "⁻");
}

export const number = (value) => value.toLocaleString("en-US");
export const fixed = (value, digits = 2) => value.toFixed(digits).replace("-", "−");

/** Whether the user wants things to stay still. */
export const stillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
