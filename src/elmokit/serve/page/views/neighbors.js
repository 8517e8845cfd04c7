// Neighbors in context: the uses in a corpus that are most like a word in a sentence, beside the
// words that are spelled like it.

import { h, latest, Superseded, choices, announce, fixed, marked, number } from "../dom.js";
import { createFigure } from "../figure.js";
import { sentenceBox, WordRow } from "../words.js";

// The two uses of "play" in the paper's table of nearest neighbors (Peters et al. 2018, table 4).
const SPORT = "Chico Ruiz made a spectacular play on Alusik's grounder.";
const STAGE = "Olivia De Havilland signed to do a Broadway play for Garson.";
const EXAMPLES = [
  { label: "The paper’s table: “play”", first: SPORT, second: STAGE, word: "play" },
  { label: "bank", first: "They walked along the bank and watched the water.", second: "He went to the bank and asked for a loan.", word: "bank" },
  { label: "cell", first: "The virus cannot enter the cell.", second: "The guard opened the cell at dawn.", word: "cell" },
  { label: "right", first: "The girl raised her right hand.", second: "The court gave him the right to vote.", word: "right" },
  { label: "spring", first: "The garden is full of flowers in spring.", second: "The mechanic replaced a spring in the engine.", word: "spring" },
];
const OFF = -30; // a scalar that leaves nothing of a layer after the softmax

export function createView(app) {
  return new NeighborsView(app);
}

class NeighborsView {
  constructor(app) {
    this.app = app;
    this.layer = String(app.model.layers - 1);
    this.index = "";
    this.sides = [new Side(this, "First sentence", 0), new Side(this, "Second sentence", 1)];
    this.static = h("ul", { class: "static-list" });
    this.staticTitle = h("h2");
    this.staticNote = h("p", { class: "note" });
    this.controls = h("div", { class: "chips" });
    this.figure = createFigure({ title: "In context", name: "neighbors", json: () => this.json(), drawn: false });
    this.figure.place.append(h("div", { class: "stack" }, this.sides.map((side) => side.results)));
    this.examples = h("div", { class: "chips" }, h("span", {}, "Try"), EXAMPLES.map((example) =>
      h("button", { type: "button", onclick: () => this.show(example.first, example.second, example.word) }, example.label)));
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "Neighbors in context"),
      h("p", { class: "lead" }, "A dictionary of vectors gives “play” one list of neighbors. A vector in context finds other uses like this one."),
      this.examples,
      h("div", { class: "even field" }, this.sides.map((side) => side.input)),
      this.controls,
      h("div", { class: "facing" },
        h("section", { class: "card", "aria-label": "By its characters alone" }, this.staticTitle, this.static, this.staticNote),
        h("div", { class: "card" }, this.figure)),
      h("p", { class: "honest" },
        "The left list is not GloVe or word2vec: it is layer 0 of the same model, which reads the characters of a word and nothing else, so that it knows spelling and a little grammar. The corpus on the right is small and was written for this page; with sentences of the same pattern, position often beats meaning. Search your own text with ", h("code", {}, "elmo neighbors"), ", or give its index to ", h("code", {}, "elmo serve --index"), "."),
    );
  }

  async open(parameters) {
    const names = this.app.layerNames;
    const layers = this.app.model.layers;
    const layer = parameters.get("layer");
    this.layer = layer === "mix" || (layer && Number(layer) < layers) ? layer : String(layers - 1);
    const indexes = this.app.info.indexes.filter(({ model }) => model === this.app.model.name);
    this.index = indexes.some(({ name }) => name === parameters.get("index")) ? parameters.get("index") : "";
    this.controls.replaceChildren(
      choices("Compare by", [...names.map((name, j) => [String(j), name]).slice(1), ["mix", "the mean of all layers"]], this.layer, (value) => {
        this.layer = value;
        this.ask();
      }),
      ...(indexes.length
        ? [choices("Corpus", [["", "the page’s own"], ...indexes.map(({ name }) => [name, name])], this.index, (value) => {
            this.index = value;
            this.ask();
          })]
        : []),
    );
    await this.show(
      parameters.get("first") ?? (this.sides[0].text || SPORT),
      parameters.get("second") ?? (this.sides[1].text || STAGE),
      parameters.get("word") ?? "play",
      [parameters.get("at1"), parameters.get("at2")],
    );
  }

  async show(first, second, word, places = []) {
    await Promise.all([first, second].map((text, i) => this.sides[i].load(text, word, places[i])));
  }

  ask() {
    return Promise.all(this.sides.map((side) => side.ask()));
  }

  get mix() {
    const count = this.app.model.layers;
    return Array.from({ length: count }, (_, j) => (this.layer === "mix" || Number(this.layer) === j ? 0 : OFF));
  }

  /** The list of the left card, for the word of one side. */
  showStatic(word, answer) {
    this.staticTitle.textContent = `“${word}” by its characters alone`;
    this.static.replaceChildren(...answer.static.map(([other, cosine]) => h("li", {}, other, h("span", {}, fixed(cosine)))));
    this.staticNote.textContent = `Layer 0, among the ${number(answer.static_words)} most frequent lower-case words: the same list in every sentence.`;
    const corpus = this.index ? `the index ${this.index}, by its own layer (${answer.layer})` : `${number(answer.sentences)} sentences`;
    this.figure.rename(`In context: among ${number(answer.uses)} uses of all words in ${corpus}`);
  }

  remember() {
    const [first, second] = this.sides;
    this.app.remember("neighbors", {
      first: first.text, at1: first.position, second: second.text, at2: second.position,
      layer: this.layer === String(this.app.model.layers - 1) ? undefined : this.layer,
      index: this.index,
    });
  }

  json() {
    return {
      model: this.app.model.name, layer: this.layer, index: this.index || "page",
      queries: this.sides.filter((side) => side.answer).map((side) => ({ words: side.words, position: side.position, ...side.answer })),
    };
  }
}

/** One sentence, its chosen word, and the uses that are most like it. */
class Side {
  #latest = latest();
  #latestSentence = latest();

  constructor(view, label, place) {
    this.view = view;
    this.place = place;
    this.text = "";
    this.position = 0;
    this.box = sentenceBox(label, [], (text) => this.load(text, this.words?.[this.position]));
    this.row = new WordRow(`Words of the ${label.toLowerCase()}: choose one`, { onchoose: (i) => this.choose(i) });
    this.input = h("div", { class: "card" }, this.box, this.row.root);
    this.title = h("h3");
    this.list = h("ul", { class: "found" });
    this.results = h("section", { "aria-label": `Neighbors, ${label.toLowerCase()}` }, this.title, this.list);
  }

  async load(text, word, place) {
    if (!text.trim()) return;
    if (this.box.box.value !== text) this.box.set(text);
    try {
      const { words } = await this.#latestSentence(this.view.app.source.layers(this.view.app.model.name, { sentence: text }));
      if (!words.length) return;
      Object.assign(this, { words, text });
      const found = words.findIndex((each) => each.toLowerCase() === word?.toLowerCase());
      if (place !== undefined && place !== null && Number(place) < words.length) this.position = Number(place);
      else this.position = found >= 0 ? found : Math.min(this.position, words.length - 1);
      this.row.show(words, this.position);
      await this.ask();
    } catch (error) {
      this.fail(error);
    }
  }

  choose(i) {
    if (i === this.position) return;
    this.position = i;
    this.row.choose(i);
    this.ask();
  }

  async ask() {
    if (!this.words) return;
    const { view } = this;
    try {
      const answer = await this.#latest(
        view.app.source.neighbors(view.app.model.name, this.words, this.position, { mix: view.mix, index: view.index || undefined, number: 8 }),
      );
      this.answer = answer;
      this.title.replaceChildren(...marked(this.words, this.position));
      this.list.replaceChildren(
        ...answer.context.map((each) => h("li", {}, h("span", {}, ...marked(each.words, each.position)), h("span", { class: "number" }, fixed(each.similarity)))),
      );
      if (this.place === 0) view.showStatic(this.words[this.position], answer);
      announce(`${answer.context.length} neighbors of ${this.words[this.position]}`);
      view.remember();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    if (error instanceof Superseded) return;
    this.list.replaceChildren(h("li", { class: "empty" }, error.message));
  }
}
