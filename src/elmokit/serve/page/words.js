// The sentence that a view is about: a box to type it in, examples, and its words as buttons.

import { h, arrowKeys, debounce, joined } from "./dom.js";

/** A box for a sentence, with examples below it; `onchange` is called with the text. */
export function sentenceBox(label, examples, onchange) {
  const box = h("textarea", { class: "sentence-box", rows: 1, spellcheck: "false", autocomplete: "off", maxlength: 2000 });
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
  };
  const typed = debounce(() => onchange(box.value), 120);
  box.addEventListener("input", () => {
    fit();
    typed();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return; // one sentence, one line
    event.preventDefault();
    onchange(box.value);
  });
  const chips = examples.map((example) =>
    h("button", {
      type: "button",
      onclick: () => {
        element.set(example.text ?? example);
        onchange(box.value, example);
      },
    }, example.label ?? example),
  );
  const element = h(
    "div",
    {},
    h("label", {}, label, box),
    chips.length ? h("div", { class: "chips" }, h("span", {}, "Try"), chips) : null,
  );
  element.set = (text) => {
    box.value = text;
    fit();
  };
  element.box = box;
  addEventListener("resize", fit);
  new ResizeObserver(fit).observe(element);
  return element;
}

/** The words of a sentence as buttons of which one is chosen. */
export class WordRow {
  constructor(label, { onchoose, onpoint } = {}) {
    this.root = h("div", { class: "words", role: "group", "aria-label": label });
    this.onchoose = onchoose;
    this.onpoint = onpoint;
    this.words = [];
    arrowKeys(this.root);
    this.root.addEventListener("mouseleave", () => this.onpoint?.(null));
  }

  /** Show words; the buttons are kept where only their text changes, so that focus stays. */
  show(words, chosen) {
    this.words = words;
    const buttons = this.buttons;
    while (buttons.length > words.length) buttons.pop().remove();
    while (buttons.length < words.length) {
      const i = buttons.length;
      const button = h("button", {
        type: "button",
        class: "word",
        onclick: () => this.onchoose(i),
        onfocus: () => this.onchoose(i),
        onmouseenter: () => this.onpoint?.(i),
      });
      this.root.append(button);
      buttons.push(button);
    }
    buttons.forEach((button, i) => {
      button.textContent = words[i];
      button.className = "word";
      button.style.background = "";
      button.style.color = "";
      button.removeAttribute("aria-label");
    });
    this.choose(chosen);
  }

  choose(chosen) {
    this.buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === chosen));
      button.tabIndex = i === chosen || (chosen === null && i === 0) ? 0 : -1;
    });
  }

  get buttons() {
    return [...this.root.children];
  }

  get text() {
    return joined(this.words);
  }
}
