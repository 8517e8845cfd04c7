// A sentence: how alike its words are, layer by layer, and in a mix of the layers.

import { h, latest, debounce, Superseded, choices, announce, fixed, marked, number } from "../dom.js";
import { heat, ink, groupColor } from "../colors.js";
import { cosines, lengths, mixLayers, softmax } from "../linalg.js";
import { createFigure, plainTable } from "../figure.js";
import { sentenceBox, WordRow } from "../words.js";
import { drawMaps } from "../heat-maps.js";

const EXAMPLES = [
  "He left the bank on the left bank of the river.",
  "They play in a play about a play.",
  "The old man the boats.",
  "Colorless green ideas sleep furiously.",
];

export function createView(app) {
  return new SentenceView(app);
}

class SentenceView {
  #latest = latest();
  #latestNeighbors = latest();

  constructor(app) {
    this.app = app;
    this.data = null;
    this.chosen = 0;
    this.pointed = null;
    this.shown = "mix";
    this.scalars = null;
    this.gamma = 1;
    this.box = sentenceBox("Sentence", EXAMPLES, (text) => this.load(text));
    this.words = new WordRow("Words of the sentence, colored by how alike they are to the chosen one", {
      onchoose: (i) => this.choose(i),
      onpoint: (i) => this.point(i),
    });
    this.figure = createFigure({
      title: "How alike the words are",
      name: "sentence",
      json: () => this.json(),
      table: () => this.table(),
    });
    this.which = h("div");
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.mix = h("div", { class: "card" });
    this.detail = h("section", { class: "card", "aria-label": "The chosen word" });
    this.near = h("div", {}, h("p", { class: "empty" }, "Searching…"));
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "A sentence"),
      h("p", { class: "lead" }, "The same word, another sentence, another vector. Type, and see which words the model finds alike."),
      this.box,
      this.problem,
      this.words.root,
      h("div", { class: "columns" },
        h("div", { class: "stack" }, h("div", { class: "card" }, this.figure, this.which), this.mix),
        this.detail),
      h("p", { class: "honest" },
        "What to expect from the built-in model: it is small, and knows grammar better than meaning. Words in the same role or the same position are often closer than words about the same thing. Cosines of different layers cannot be compared with each other: higher layers spread words less evenly."),
    );
    this.askNeighbors = debounce(() => this.loadNeighbors(), 150);
    app.onRedraw(() => this.data && this.draw());
    new ResizeObserver(() => this.data && this.drawFigure()).observe(this.figure);
  }

  async open(parameters) {
    const { layers, mix } = this.app.model;
    const given = parameters.get("s")?.split(",").map(Number);
    const valid = given?.length === layers && given.every(Number.isFinite);
    this.scalars = valid ? given : mix ?? Array(layers).fill(0);
    this.gamma = Number(parameters.get("gamma")) || 1;
    const shown = parameters.get("show");
    this.shown = shown !== null && Number(shown) < layers && Number(shown) >= 0 ? String(Number(shown)) : "mix";
    this.chosen = Number(parameters.get("word") ?? this.chosen) || 0;
    const text = parameters.get("text") ?? (this.box.box.value || EXAMPLES[0]);
    if (!parameters.has("word") && text === EXAMPLES[0]) this.chosen = 3;
    if (this.box.box.value !== text) this.box.set(text);
    this.buildControls();
    await this.load(text);
  }

  buildControls() {
    const names = this.app.layerNames;
    this.which.replaceChildren(
      choices("Large map", [["mix", "Mix"], ...names.map((name, j) => [String(j), name])], this.shown, (value) => {
        this.shown = value;
        this.draw();
      }),
    );
    const sliders = names.map((name, j) =>
      this.slider(`s${sub(j)} ${name}`, -4, 4, this.scalars[j], (value) => (this.scalars[j] = value)),
    );
    this.shares = h("div", { class: "shares", "aria-hidden": "true" }, names.map((_, j) => h("i", { style: { background: groupColor(j) } })));
    this.sharesText = h("p", { class: "note" });
    const reset = h("button", { type: "button", onclick: () => {
      this.scalars = this.app.model.mix ?? names.map(() => 0);
      this.gamma = 1;
      this.buildControls();
      this.draw();
    } }, "Reset");
    this.mix.replaceChildren(
      h("fieldset", { class: "mix" },
        h("legend", { class: "unseen" }, "Weights of the layers"),
        h("div", { class: "card-head" }, h("h2", {}, "Mix of the layers"), reset),
        sliders,
        this.slider("γ scale", 0.1, 3, this.gamma, (value) => (this.gamma = value)),
        this.shares,
        this.sharesText),
    );
  }

  slider(label, min, max, value, set) {
    const id = `slider-${Math.random().toString(36).slice(2)}`;
    const output = h("output", { for: id }, fixed(value, 1));
    const input = h("input", { type: "range", id, min, max, step: 0.1, value, oninput: () => {
      set(Number(input.value));
      output.textContent = fixed(Number(input.value), 1);
      this.draw();
    } });
    return h("div", { class: "slider" }, h("label", { for: id }, label), input, output);
  }

  async load(text) {
    this.problem.hidden = true;
    if (!text.trim()) return;
    try {
      const data = await this.#latest(this.app.source.layers(this.app.model.name, { sentence: text }));
      if (!data.words.length) return;
      const { words, layers, count, dim } = data;
      const size = words.length * dim;
      const perLayer = Array.from({ length: count }, (_, j) => layers.subarray(j * size, (j + 1) * size));
      this.data = { ...data, text, perLayer, maps: perLayer.map((rows) => cosines(rows, dim)) };
      this.chosen = Math.min(this.chosen, words.length - 1);
      this.pointed = null;
      this.words.show(words, this.chosen);
      this.draw();
      announce(`${words.length} words`);
    } catch (error) {
      if (error instanceof Superseded) return;
      this.problem.textContent = error.message;
      this.problem.hidden = false;
    }
  }

  choose(i) {
    this.chosen = i;
    this.pointed = null;
    this.words.choose(i);
    this.draw();
  }

  point(i) {
    this.pointed = i;
    this.tint();
    this.figure.highlight?.(this.focus);
  }

  get focus() {
    return this.pointed ?? this.chosen;
  }

  /** Draw everything that depends on the mix, the chosen word or the colors. */
  draw() {
    const { layers, count, dim } = this.data;
    const shares = softmax(this.scalars);
    const mixed = mixLayers(layers, count, shares, this.gamma);
    this.data.mixed = mixed;
    this.data.mixMap = cosines(mixed, dim);
    [...this.shares.children].forEach((part, j) => {
      part.style.width = `${100 * shares[j]}%`;
      part.style.background = groupColor(j);
    });
    this.sharesText.textContent =
      `ELMo = γ · Σ softmax(s)ⱼ · hⱼ: ${this.app.layerNames.map((name, j) => `${name} ${Math.round(100 * shares[j])} %`).join(", ")}. ` +
      "γ changes the length of the vectors, not their angles: the map stays the same.";
    this.drawFigure();
    this.tint();
    this.drawDetail();
    this.askNeighbors();
    this.remember();
  }

  drawFigure() {
    const names = [...this.app.layerNames, "Mix"];
    const maps = [...this.data.maps, this.data.mixMap];
    const large = this.shown === "mix" ? maps.length - 1 : Number(this.shown);
    const { svg, highlight } = drawMaps({
      words: this.data.words,
      maps,
      names,
      large,
      width: this.figure.place.clientWidth || 640,
      onpoint: (i) => this.point(i),
      onchoose: (i) => this.choose(i),
    });
    this.figure.highlight = highlight;
    this.figure.draw(svg);
    highlight(this.focus);
  }

  get shownMap() {
    return this.shown === "mix" ? this.data.mixMap : this.data.maps[Number(this.shown)];
  }

  /** Color the words by how alike they are to the chosen one. */
  tint() {
    const count = this.data.words.length;
    this.words.buttons.forEach((button, i) => {
      const value = this.shownMap[this.focus * count + i];
      const color = heat(value);
      button.style.background = color;
      button.style.color = ink(color);
      button.setAttribute("aria-label", i === this.focus ? `${button.textContent}, chosen` : `${button.textContent}, cosine ${fixed(value)}`);
    });
  }

  drawDetail() {
    const { words, dim, perLayer, mixed, maps, mixMap } = this.data;
    const names = [...this.app.layerNames, "Mix"];
    const rows = [...perLayer, mixed];
    const word = words[this.chosen];
    const stripes = names.flatMap((name, j) => {
      const vector = rows[j].subarray(this.chosen * dim, (this.chosen + 1) * dim);
      return [h("span", {}, name), stripe(vector), h("span", { class: "length" }, fixed(lengths(vector, dim)[0], 1))];
    });
    const near = [...maps, mixMap].map((map) => nearest(map, words, this.chosen, 4));
    this.detail.replaceChildren(
      h("h2", {}, `“${word}”, word ${this.chosen + 1} of ${words.length}`),
      h("h3", {}, `Its layers: ${dim} numbers each, and their length`),
      h("div", { class: "stripes" }, stripes),
      h("h3", {}, "Most alike in this sentence"),
      words.length > 1
        ? h("div", { class: "scroll" }, h("table", {},
            h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, near[0].map((_, k) => h("tr", {}, near.map((list) =>
              h("td", {}, list[k][0], " ", h("small", { class: "soft-text" }, fixed(list[k][1]))))))))) 
        : h("p", { class: "empty" }, "There is only one word."),
      h("h3", {}, `Most alike in ${number(this.app.info.corpus)} other sentences, by the mix`),
      this.near,
    );
  }

  async loadNeighbors() {
    const { words } = this.data;
    try {
      const answer = await this.#latestNeighbors(
        this.app.source.neighbors(this.app.model.name, words, this.chosen, { mix: this.scalars, number: 6 }),
      );
      this.near.replaceChildren(
        h("ul", { class: "found" }, answer.context.map((each) =>
          h("li", {}, h("span", {}, ...marked(each.words, each.position)), h("span", { class: "number" }, fixed(each.similarity))))),
      );
    } catch (error) {
      if (!(error instanceof Superseded)) this.near.replaceChildren(h("p", { class: "empty" }, error.message));
    }
  }

  remember() {
    const plain = this.scalars.every((value) => value === this.scalars[0]);
    this.app.remember("sentence", {
      text: this.data.text,
      word: this.chosen,
      show: this.shown === "mix" ? undefined : this.shown,
      s: plain ? undefined : this.scalars.join(","),
      gamma: this.gamma === 1 ? undefined : this.gamma,
    });
  }

  table() {
    const { words } = this.data;
    const count = words.length;
    return plainTable(
      `Cosines: ${this.shown === "mix" ? "mix" : this.app.layerNames[Number(this.shown)]}`,
      ["", ...words],
      words.map((word, i) => [word, ...words.map((_, k) => Number(this.shownMap[i * count + k].toFixed(2)))]),
    );
  }

  json() {
    const { words, maps, mixMap, text } = this.data;
    const square = (map) => words.map((_, i) => words.map((_, k) => Number(map[i * words.length + k].toFixed(6))));
    return {
      model: this.app.model.name, text, words,
      scalars: this.scalars, weights: softmax(this.scalars), gamma: this.gamma,
      cosines: Object.fromEntries([...this.app.layerNames.map((name, j) => [name, square(maps[j])]), ["Mix", square(mixMap)]]),
    };
  }
}

/** The numbers of a vector as colored stripes; the strongest has the full color. */
function stripe(vector) {
  const canvas = h("canvas", { width: vector.length, height: 1, "aria-hidden": "true" });
  const brush = canvas.getContext("2d");
  const largest = Math.max(...vector.map(Math.abs)) || 1;
  vector.forEach((value, i) => {
    brush.fillStyle = heat(value / largest);
    brush.fillRect(i, 0, 1, 1);
  });
  return canvas;
}

function nearest(map, words, chosen, most) {
  const others = words.map((word, i) => [word, map[chosen * words.length + i], i]).filter(([, , i]) => i !== chosen);
  return others.sort((a, b) => b[1] - a[1] || a[2] - b[2]).slice(0, most);
}

const sub = (j) => String(j).replace(/\d/g, (c) => "₀₁₂₃₄₅₆₇₈₉"[c]);
