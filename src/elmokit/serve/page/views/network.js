// How it works: the numbers of a typed sentence on their way through the network, word by word.

import { h, latest, Superseded, announce, stillness } from "../dom.js";
import { createFigure, plainTable } from "../figure.js";
import { sentenceBox, WordRow } from "../words.js";
import { softmax } from "../linalg.js";
import { drawNetwork } from "../network-drawing.js";
import { stagesOf } from "../network-stages.js";

const EXAMPLES = ["The river rose over its bank.", "The bank lent them the money.", "Twas brillig, and the slithy toves."];

export function createView(app) {
  return new NetworkView(app);
}

class NetworkView {
  #latest = latest();
  #latestSentence = latest();
  #timer = 0;

  constructor(app) {
    this.app = app;
    this.position = 0;
    this.stage = 0;
    this.box = sentenceBox("Sentence", EXAMPLES, (text) => this.load(text));
    this.row = new WordRow("Words of the sentence: choose the one to follow", { onchoose: (i) => this.choose(i) });
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.figure = createFigure({ title: "The network", name: "network", json: () => this.json(), table: () => this.table() });
    this.stageList = h("ol", { class: "stages" });
    this.caption = h("div", { class: "caption", "aria-live": "polite" });
    const button = (label, name, action) => h("button", { type: "button", "aria-label": name, onclick: action }, label);
    this.play = h("button", { type: "button", onclick: () => this.toggle() }, "▶ Play");
    this.stepper = h(
      "div",
      { class: "stepper" },
      h("span", { class: "pair" }, button("◀", "Previous step", () => this.step(-1)), "step", button("▶", "Next step", () => this.step(1))),
      h("span", { class: "pair" }, button("◀", "Previous word", () => this.choose(this.position - 1)), "word", button("▶", "Next word", () => this.choose(this.position + 1))),
      this.play,
      h("span", { class: "keys" }, h("kbd", {}, "↑ ↓"), " steps, ", h("kbd", {}, "← →"), " words"),
    );
    this.area = h("div", { class: "network", tabindex: "0", role: "group", "aria-label": "The network, step by step: arrow up and down change the step, left and right the word" },
      h("div", { class: "card" }, this.figure),
      h("aside", { class: "card" }, h("h2", {}, "Step by step"), this.stageList, this.caption));
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "How it works"),
      h("p", { class: "lead" }, "From letters to a vector that knows its sentence. All numbers are those of your sentence: each little square is one of them, blue above zero, orange below."),
      this.box, this.row.root, this.problem, this.stepper, this.area,
      h("p", { class: "honest" }, "Nobody assigned a meaning to these numbers: training did. A strong color says that a number is large, and nothing about what it stands for."),
    );
    app.onRedraw(() => this.trace && this.draw());
    new ResizeObserver(() => this.trace && this.draw()).observe(this.figure);
  }

  async open(parameters) {
    const text = parameters.get("text") ?? (this.box.box.value || EXAMPLES[0]);
    this.box.set(text);
    if (parameters.has("word")) this.position = Number(parameters.get("word")) || 0;
    else if (!this.trace) this.position = 5;
    this.stage = Number(parameters.get("step") ?? this.stage) || 0;
    await this.load(text);
  }

  async load(text) {
    if (!text.trim()) return;
    try {
      const data = await this.#latestSentence(this.app.source.layers(this.app.model.name, { sentence: text }));
      if (!data.words.length) return;
      this.data = data;
      this.text = text;
      this.position = Math.min(this.position, data.words.length - 1);
      this.row.show(data.words, this.position);
      await this.follow();
    } catch (error) {
      this.fail(error);
    }
  }

  choose(i) {
    if (!this.data || i < 0 || i >= this.data.words.length || (i === this.position && this.trace)) return;
    this.position = i;
    this.row.choose(i);
    this.follow();
  }

  /** Get the numbers of the chosen word, and those of the next one for the step after this. */
  async follow() {
    const { words } = this.data;
    try {
      const { header, arrays } = await this.#latest(this.app.source.trace(this.app.model.name, words, this.position));
      this.problem.hidden = true;
      this.trace = { ...header, arrays };
      this.stages = stagesOf({ trace: this.trace, words, position: this.position, data: this.data, shares: this.shares });
      this.stage = Math.min(this.stage, this.stages.length - 1);
      this.draw();
      if (this.position + 1 < words.length) this.app.source.trace(this.app.model.name, words, this.position + 1).catch(() => {});
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    if (error instanceof Superseded) return;
    this.problem.textContent = error.message;
    this.problem.hidden = false;
  }

  get shares() {
    return softmax(this.app.model.mix ?? Array(this.app.model.layers).fill(0));
  }

  step(by) {
    const next = this.stage + by;
    if (next >= 0 && next < this.stages.length) {
      this.stage = next;
      this.draw();
    } else if (next >= this.stages.length && this.position + 1 < this.data.words.length) {
      this.stage = 0;
      this.choose(this.position + 1);
    } else if (next < 0 && this.position > 0) {
      this.stage = this.stages.length - 1;
      this.choose(this.position - 1);
    } else return false;
    return true;
  }

  key(event) {
    if (event.target.closest("button, summary, input, .scroll")) return;
    const action = {
      ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1), " ": () => this.step(1),
      ArrowRight: () => this.choose(this.position + 1), ArrowLeft: () => this.choose(this.position - 1),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  toggle() {
    if (this.#timer) return this.stop();
    this.play.textContent = "❚❚ Stop";
    const tick = () => {
      if (!this.root.isConnected || !this.step(1)) this.stop();
    };
    this.#timer = setInterval(tick, stillness() ? 3000 : 1800);
    if (this.stage === this.stages.length - 1 && this.position === this.data.words.length - 1) {
      this.stage = 0;
      this.choose(0);
    } else tick();
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.play.textContent = "▶ Play";
  }

  draw() {
    const { words } = this.data;
    this.figure.rename(`“${words[this.position]}” on its way`);
    const { svg, tops } = drawNetwork({
      trace: this.trace, words, position: this.position, data: this.data, shares: this.shares,
      stages: this.stages, stage: this.stage, width: Math.max(300, this.figure.place.clientWidth || 700),
      onstage: (k) => {
        this.stage = k;
        this.draw();
      },
    });
    this.figure.draw(svg);
    this.stageList.replaceChildren(
      ...this.stages.map(({ title }, k) =>
        h("li", {}, h("button", { type: "button", "aria-current": k === this.stage ? "step" : undefined, onclick: () => {
          this.stage = k;
          this.draw();
          this.stageList.children[k].firstChild.focus();
        } }, `${k + 1}. ${title}`))),
    );
    this.caption.replaceChildren(...this.stages[this.stage].text.map((line) => h("p", {}, line)));
    this.keepInSight(svg, tops[this.stage]);
    this.app.remember("network", { text: this.text, word: this.position, step: this.stage });
  }

  /** Scroll to the current step if it is out of sight, but only while the user is stepping. */
  keepInSight(svg, [top, height]) {
    if (!this.area.contains(document.activeElement) && !this.stepper.contains(document.activeElement)) return;
    const box = svg.getBoundingClientRect();
    const from = box.top + top, to = from + height;
    if (from >= 0 && to <= innerHeight) return;
    scrollBy({ top: from - Math.max(40, (innerHeight - height) / 2), behavior: stillness() ? "instant" : "smooth" });
  }

  table() {
    return plainTable(`Numbers of “${this.data.words[this.position]}”`, ["Stage", "Numbers", "Smallest", "Mean", "Largest"],
      Object.entries(this.trace.arrays).map(([name, values]) => [
        name, values.length, ...[Math.min(...values), values.reduce((a, b) => a + b, 0) / values.length, Math.max(...values)].map((x) => Number(x.toFixed(3)))]));
  }

  json() {
    const { arrays, ...facts } = this.trace;
    return {
      model: this.app.model.name, words: this.data.words, position: this.position, ...facts,
      arrays: Object.fromEntries(Object.entries(arrays).map(([name, values]) => [name, { shape: values.shape, values: [...values].map((x) => Number(x.toFixed(6))) }])),
    };
  }
}
