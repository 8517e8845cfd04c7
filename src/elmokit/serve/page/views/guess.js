// Guess the word: what each direction, and both together, expect at a place.

import { h, s, latest, Superseded, announce, percent, number, joined } from "../dom.js";
import { createFigure, plainTable } from "../figure.js";
import { sentenceBox, WordRow } from "../words.js";

const EXAMPLES = [
  "The doctor told the patient to stay in bed for a week.",
  "She was born in 1902 in a small village near Paris.",
  "The old king died without a son.",
  "He put the key under the stone and walked away.",
];
const PANELS = [
  ["forward", "Forward", "sees the words before"],
  ["both", "Both together", "the product of the two"],
  ["backward", "Backward", "sees the words after"],
];
const SHOWN = 10;
const UNKNOWN = "<UNK>";

/** The words that stand for themselves. */
const known = (best) => best.filter(([word]) => word !== UNKNOWN);

export function createView(app) {
  return new GuessView(app);
}

class GuessView {
  #latest = latest();
  #latestSentence = latest();

  constructor(app) {
    this.app = app;
    this.words = null;
    this.position = 0;
    this.box = sentenceBox("Sentence", EXAMPLES, (text) => this.load(text));
    this.row = new WordRow("Words of the sentence: choose the one to guess", { onchoose: (i) => this.choose(i) });
    this.other = h("input", { type: "text", autocomplete: "off", maxlength: 60, placeholder: "another word", oninput: () => this.ask() });
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.figure = createFigure({ title: "Likeliest words", name: "guess", json: () => this.json(), table: () => this.table() });
    this.ranks = h("div", { class: "scroll" });
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "Guess the word"),
      h("p", { class: "lead" }, "The network learned one thing: to guess a word from the words before it, and from those after it. Choose a word to hide, and see what each side expects."),
      this.box,
      this.row.root,
      this.problem,
      h("div", { class: "stack" },
        h("div", { class: "card" }, this.figure),
        h("div", { class: "card" },
          h("h2", {}, "Where does a word rank?"),
          h("div", { class: "inline-form" }, h("label", {}, "Try another word in this place", this.other)),
          this.ranks)),
      h("p", { class: "honest" },
        "The built-in model predicts 30,000 words; <UNK> stands for all others together, so that it is often the likeliest; it is left out of the bars and counts in the ranks. “Both” multiplies the two directions and favors frequent words. The model was trained for two hours on two cores: it is right about kinds of words far more often than about the word, and a likely word is not a true one."),
    );
    app.onRedraw(() => this.answer && this.draw());
    new ResizeObserver(() => this.answer && this.draw()).observe(this.figure);
  }

  async open(parameters) {
    const text = parameters.get("text") ?? (this.box.box.value || EXAMPLES[0]);
    this.box.set(text);
    if (parameters.has("position")) this.position = Number(parameters.get("position")) || 0;
    else if (!this.words) this.position = 4;
    this.other.value = parameters.get("other") ?? this.other.value;
    await this.load(text);
  }

  async load(text) {
    if (!text.trim()) return;
    try {
      const { words } = await this.#latestSentence(this.app.source.layers(this.app.model.name, { sentence: text }));
      if (!words.length) return;
      this.words = words;
      this.text = text;
      this.position = Math.min(this.position, words.length - 1);
      await this.ask();
    } catch (error) {
      this.fail(error);
    }
  }

  choose(i) {
    if (i === this.position && this.answer) return;
    this.position = i;
    this.ask();
  }

  async ask() {
    const other = this.other.value.trim();
    try {
      const answer = await this.#latest(this.app.source.guess(this.app.model.name, this.words, this.position, other ? [other] : []));
      this.problem.hidden = true;
      this.answer = answer;
      this.draw();
      const [best] = known(answer.both.best);
      announce(`Both expect ${best[0]}, ${percent(best[1])}`);
      this.app.remember("guess", { text: this.text, position: this.position, other });
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    if (error instanceof Superseded) return;
    this.problem.textContent = error.message;
    this.problem.hidden = false;
  }

  draw() {
    this.row.show(this.words, this.position);
    const hidden = this.row.buttons[this.position];
    hidden.classList.add("hidden-word");
    hidden.setAttribute("aria-label", `${hidden.textContent}, hidden from the model`);
    const width = Math.max(280, this.figure.place.clientWidth || 800);
    const columns = width > 640 ? 3 : 1;
    const gap = 28;
    const panel = (width - gap * (columns - 1)) / columns;
    const line = 27;
    const head = 62;
    const tall = head + (SHOWN + 1) * line;
    const height = columns === 3 ? tall : 3 * tall + 24;
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.description() });
    PANELS.forEach(([name, title, note], p) => {
      const x = columns === 3 ? p * (panel + gap) : 0;
      const y = columns === 3 ? 0 : p * (tall + 12);
      const best = known(this.answer[name].best).slice(0, SHOWN);
      const largest = Math.max(best[0]?.[1] ?? 1, 1e-9);
      const own = new Set(this.answer.words.map(({ known }) => known));
      const group = s("g", { transform: `translate(${x} ${y})` },
        s("text", { class: "serif", x: 0, y: 18, "font-size": 17, "font-weight": 600 }, title),
        s("text", { class: "soft", x: 0, y: 38, "font-size": 12.5 }, this.context(name, Math.floor(panel / 7)) || note));
      best.forEach(([word, probability], i) => {
        const top = head + i * line;
        const long = (panel - 62) * (probability / largest);
        group.append(
          s("rect", { class: "bar-back", x: 0, y: top - 3, width: panel - 62, height: 22, rx: 5 }),
          s("rect", { class: "bar", x: 0, y: top - 3, width: Math.max(3, long), height: 22, rx: 5, opacity: own.has(word) ? 0.75 : 0.3 }),
          s("text", { class: "serif", x: 9, y: top + 8.5, "font-size": 15.5, "font-weight": own.has(word) ? 700 : 400, "dominant-baseline": "central" }, word),
          s("text", { class: "soft", x: panel, y: top + 8.5, "font-size": 12.5, "text-anchor": "end", "dominant-baseline": "central" }, percent(probability)));
      });
      const rest = this.answer[name].best.find(([word]) => word === UNKNOWN);
      const foot = head + SHOWN * line + 10;
      if (rest)
        group.append(
          s("text", { class: "soft", x: 9, y: foot, "font-size": 12.5, "font-style": "italic" }, "any word that is not in its list"),
          s("text", { class: "soft", x: panel, y: foot, "font-size": 12.5, "text-anchor": "end" }, percent(rest[1])));
      svg.append(group);
    });
    this.figure.rename(`Likeliest words in the place of “${this.words[this.position]}”`);
    this.figure.draw(svg);
    this.ranks.replaceChildren(this.rankTable());
  }

  /** What a direction reads, shortened to fit. */
  context(name, room) {
    const before = this.words.slice(0, this.position);
    const after = this.words.slice(this.position + 1);
    const cut = (text, end) => (text.length <= room ? text : end ? `${text.slice(0, room - 1)}…` : `…${text.slice(text.length - room + 1)}`);
    if (name === "forward") return before.length ? cut(`${joined(before)} ___`, false) : "sees the beginning of the sentence only";
    if (name === "backward") return after.length ? cut(`___ ${joined(after)}`, true) : "sees the end of the sentence only";
    return "the product of the two directions";
  }

  description() {
    return PANELS.map(([name, title]) => `${title}: ${known(this.answer[name].best).slice(0, 3).map(([word, p]) => `${word} ${percent(p)}`).join(", ")}`).join(". ");
  }

  rankTable() {
    const { words, vocabulary } = this.answer;
    const shown = (name, i) => `${number(this.answer[name].ranks[i])}`;
    return h("table", { class: "ranks" },
      h("caption", {}, `Rank among ${number(vocabulary)} words, and probability`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Word"), PANELS.map(([, title]) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, words.map(({ word, known }, i) =>
        h("tr", {}, h("th", { scope: "row" }, known === word ? word : `${word} (counts as ${known})`),
          PANELS.map(([name]) => h("td", {}, h("strong", {}, shown(name, i)), ` · ${percent(this.answer[name].probabilities[i])}`))))));
  }

  table() {
    return plainTable("The likeliest words", ["Rank", ...PANELS.flatMap(([, title]) => [title, "Probability"])],
      Array.from({ length: SHOWN }, (_, i) => [String(i + 1), ...PANELS.flatMap(([name]) => {
        const [word, p] = known(this.answer[name].best)[i] ?? ["", 0];
        return [word, percent(p)];
      })]));
  }

  json() {
    return { model: this.app.model.name, sentence: this.words, position: this.position, ...this.answer };
  }
}
