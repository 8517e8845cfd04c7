// A word in many sentences: its uses in a plane, from the characters to the top layer.

import { h, s, latest, Superseded, choices, announce, marked, joined, stillness } from "../dom.js";
import { groupColor } from "../colors.js";
import { aligned, cluster, gram, plane, unitRows } from "../linalg.js";
import { createFigure, plainTable } from "../figure.js";
import { symbol, swatch } from "../symbols.js";

const OWN = "own";

export function createView(app) {
  return new UsesView(app);
}

class UsesView {
  #latest = latest();
  #timer = 0;

  constructor(app) {
    this.app = app;
    this.set = "bank";
    this.layer = app.model.layers - 1;
    this.coloring = "sense";
    this.chosen = null;
    this.data = null;
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Word" },
      h("span", {}, "Word"),
      Object.keys(app.info.samples).map((word) => h("button", { type: "button", "data-set": word, onclick: () => this.choose(word) }, word)),
      h("button", { type: "button", "data-set": OWN, onclick: () => this.choose(OWN) }, "Your own…"));
    this.word = h("input", { type: "text", autocomplete: "off", maxlength: 60 });
    this.text = h("textarea", { rows: 6, placeholder: "One sentence per line" });
    this.form = h("form", { class: "card field", hidden: true, onsubmit: (event) => {
      event.preventDefault();
      this.load();
    } },
      h("div", { class: "field" }, h("label", {}, "Word", this.word)),
      h("div", { class: "field" }, h("label", {}, "Sentences with it, one per line; “sense: sentence” gives a color", this.text)),
      h("button", { class: "main" }, "Show"));
    this.problem = h("p", { class: "error", role: "alert", hidden: true });
    this.figure = createFigure({
      title: "Uses in a plane",
      name: () => `uses-${this.data?.word ?? "word"}`,
      json: () => this.json(),
      table: () => this.table(),
    });
    this.slider = h("input", { type: "range", min: 0, max: this.layer, step: 0.01, id: "layer", "aria-label": "Layer", oninput: () => {
      this.stop();
      this.move(Number(this.slider.value));
    }, onchange: () => this.remember(), onkeydown: (event) => this.key(event) });
    this.play = h("button", { type: "button", onclick: () => this.toggle() }, "▶ Play");
    this.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
    this.legend = h("ul", { class: "legend" });
    this.score = h("p", { class: "note" });
    this.controls = h("div");
    this.list = h("ul", { class: "uses" });
    this.listTitle = h("h2");
    this.root = h(
      "section",
      { class: "view" },
      h("h1", {}, "A word in many sentences"),
      h("p", { class: "lead" }, "By its characters alone a word has one vector. Move the slider up through the network and watch its uses drift apart."),
      this.chips, this.form, this.problem,
      h("div", { class: "columns" },
        h("div", { class: "card plane" }, this.figure,
          h("div", { class: "layer-slider" }, this.play, this.slider, this.ticks),
          this.legend, this.score, this.controls),
        h("section", { class: "card", "aria-label": "Sentences" }, this.listTitle, this.list)),
      h("p", { class: "honest" },
        "A plane keeps only two of many directions: dots that overlap here may be apart. With the built-in model the nearest other use has the same sense for about four of five sentences with “bank” and “play”; a coin would give one of two. Its mistakes have a pattern: the position of a word and the words right beside it count more than the topic."),
    );
    app.onRedraw(() => this.data && this.draw());
    new ResizeObserver(() => this.data && this.draw()).observe(this.figure);
  }

  async open(parameters) {
    const layers = this.app.model.layers;
    this.slider.max = layers - 1;
    this.ticks.replaceChildren(...this.app.layerNames.map((name) => h("span", {}, name)));
    const word = parameters.get("word");
    const samples = this.app.info.samples;
    if (parameters.has("sentences")) {
      this.set = OWN;
      this.word.value = word ?? "";
      this.text.value = parameters.get("sentences");
    } else if (word && word in samples) this.set = word;
    else if (!(this.set in samples) && this.set !== OWN) this.set = Object.keys(samples)[0];
    this.coloring = parameters.get("color") === "clusters" ? "clusters" : "sense";
    const layer = Number(parameters.get("layer") ?? layers - 1);
    this.layer = Math.max(0, Math.min(layers - 1, Number.isFinite(layer) ? layer : layers - 1));
    this.slider.value = this.layer;
    this.wanted = parameters.has("use") ? Number(parameters.get("use")) : null;
    await this.choose(this.set);
  }

  async choose(set) {
    this.set = set;
    for (const chip of this.chips.querySelectorAll("button")) chip.setAttribute("aria-pressed", String(chip.dataset.set === set));
    this.form.hidden = set !== OWN;
    if (set === OWN && !this.text.value.trim()) {
      this.word.value = "run";
      this.text.value = "sport: She run a mile before breakfast.\nsport: They run along the beach every morning.\nsport: The horses run in the field.\nwork: They run a small hotel in Ghent.\nwork: Her sons run the company now.\nwork: Two brothers run the farm.";
    }
    await this.load();
  }

  async load() {
    this.problem.hidden = true;
    const own = this.set === OWN;
    const rows = own ? parseLines(this.text.value) : this.app.info.samples[this.set];
    const word = own ? this.word.value.trim() : this.set;
    try {
      const answer = await this.#latest(this.app.source.uses(this.app.model.name, word, rows.map(([, text]) => text)));
      const { uses, layers, count, dim } = answer;
      const size = uses.length * dim;
      const senses = uses.map((use) => rows[use.sentence][0]);
      const names = [...new Set(senses)].filter(Boolean);
      const perLayer = Array.from({ length: count }, (_, j) => unitRows(layers.subarray(j * size, (j + 1) * size), dim));
      const planes = [];
      for (let j = count - 1; j >= 0; j--) {
        // The top layer is laid out first, and those below are turned towards it.
        const { points, kept } = plane(perLayer[j], dim);
        planes[j] = { kept, points: planes[j + 1] ? aligned(points, planes[j + 1].points) : points };
      }
      this.data = { word, uses, senses, names, perLayer, planes, dim, without: answer.without };
      this.chosen = this.wanted !== null && this.wanted < uses.length ? this.wanted : null;
      this.wanted = null;
      if (names.length < 2) this.coloring = "clusters";
      this.buildControls();
      this.buildList();
      this.draw();
      this.remember();
      announce(`${uses.length} uses of ${word}`);
    } catch (error) {
      if (error instanceof Superseded) return;
      this.problem.textContent = error.message;
      this.problem.hidden = false;
    }
  }

  buildControls() {
    const known = this.data.names.length > 1;
    this.controls.replaceChildren(
      choices("Color", [...(known ? [["sense", "senses as people see them"]] : []), ["clusters", "clusters the vectors form"]], this.coloring, (value) => {
        this.coloring = value;
        this.buildList();
        this.draw();
        this.remember();
      }),
    );
  }

  /** Group of each use, and the names of the groups. */
  groups(layer = Math.round(this.layer)) {
    const { senses, names, perLayer, dim } = this.data;
    if (this.coloring === "sense") return { groups: senses.map((sense) => Math.max(0, names.indexOf(sense))), names };
    const k = Math.max(2, Math.min(6, names.length || 2));
    const found = layer === 0 ? senses.map(() => 0) : cluster(perLayer[layer], dim, k);
    const labels = layer === 0 ? ["one vector for all"] : Array.from({ length: k }, (_, i) => `cluster ${i + 1}`);
    return { groups: found, names: labels };
  }

  buildList() {
    const { uses, without, word } = this.data;
    const { groups, names } = this.groups();
    this.listTitle.textContent = `${uses.length} uses of “${word}”` + (without ? `; ${without} sentences lack it` : "");
    this.list.replaceChildren(
      ...uses.map((use, i) =>
        h("li", {}, h("button", { type: "button", class: "use", "aria-pressed": String(i === this.chosen), onclick: () => this.select(i === this.chosen ? null : i), onmouseenter: () => this.hint(i), onmouseleave: () => this.hint(null) },
          swatch(groups[i]), h("span", {}, h("span", { class: "unseen" }, `${names[groups[i]]}: `), ...marked(use.words, use.position))))),
    );
    this.legend.replaceChildren(...names.map((name, g) => h("li", {}, swatch(g), name)));
  }

  draw() {
    const width = Math.max(300, this.figure.place.clientWidth || 600);
    const height = Math.min(width * 0.72, 520);
    const { uses, word } = this.data;
    const { groups, names } = this.groups();
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${uses.length} uses of ${word} in a plane` });
    this.dots = uses.map((use, i) => {
      const dot = s("g", { class: "dot", tabindex: i === (this.chosen ?? 0) ? 0 : -1, role: "button", "aria-label": `${names[groups[i]]}: ${joined(use.words)}`, onclick: () => this.select(i === this.chosen ? null : i), onkeydown: (event) => this.dotKey(event, i), onmouseenter: () => this.hint(i), onmouseleave: () => this.hint(null) },
        s("circle", { class: "halo", r: 11 }), symbol(groups[i]));
      svg.append(dot);
      return dot;
    });
    this.label = s("g", { "pointer-events": "none" });
    svg.append(this.label);
    this.size = [width, height];
    this.figure.draw(svg);
    this.move(this.layer);
  }

  /** Place the dots between two layers. */
  move(layer) {
    const before = Math.round(this.layer);
    this.layer = layer;
    this.slider.value = layer;
    const { planes } = this.data;
    const low = Math.min(Math.floor(layer), planes.length - 2);
    const part = layer - low;
    const [width, height] = this.size;
    const [scale, left, top] = this.fit(width, height);
    this.places = planes[low].points.map(([x, y], i) => {
      const [u, v] = planes[low + 1].points[i];
      return [left + ((1 - part) * x + part * u) * scale, top - ((1 - part) * y + part * v) * scale];
    });
    this.dots.forEach((dot, i) => dot.setAttribute("transform", `translate(${this.places[i].map((c) => c.toFixed(1)).join(" ")})`));
    this.slider.setAttribute("aria-valuetext", this.layerText());
    this.figure.rename(`“${this.data.word}”: ${this.layerText()}`);
    if (this.coloring === "clusters" && before !== Math.round(layer)) {
      this.buildList();
      this.draw();
    }
    this.describe();
    this.mark(this.chosen);
  }

  /** Scale and origin with which the dots of all layers are in the picture. */
  fit(width, height) {
    const all = this.data.planes.flatMap(({ points }) => points);
    const [xs, ys] = [0, 1].map((axis) => all.map((point) => point[axis]));
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const margin = 30;
    const scale = Math.min((width - 2 * margin) / Math.max(x1 - x0, 1e-6), (height - 2 * margin) / Math.max(y1 - y0, 1e-6));
    return [scale, (width - (x0 + x1) * scale) / 2, (height + (y0 + y1) * scale) / 2];
  }

  layerText() {
    const names = this.app.layerNames;
    const low = Math.floor(this.layer);
    return Number.isInteger(this.layer) ? names[low] : `between ${names[low]} and ${names[low + 1]}`;
  }

  describe() {
    const layer = Math.round(this.layer);
    const { planes, senses, names, perLayer, dim } = this.data;
    if (layer === 0) {
      this.score.textContent = "Characters alone: one vector for all uses, since nothing of the sentence is in it.";
      return;
    }
    const shown = Math.round(100 * (planes[layer].kept[0] + planes[layer].kept[1]));
    let text = `${this.app.layerNames[layer]}: the plane shows ${shown} % of how the vectors differ.`;
    if (names.length > 1) {
      const cosine = gram(perLayer[layer], dim);
      const same = senses.filter((sense, i) => {
        let best = -1;
        senses.forEach((_, k) => {
          if (k !== i && (best < 0 || cosine[i * senses.length + k] > cosine[i * senses.length + best])) best = k;
        });
        return senses[best] === sense;
      }).length;
      text = `${this.app.layerNames[layer]}: the nearest other use has the same sense for ${same} of ${senses.length}. The plane shows ${shown} % of how the vectors differ.`;
    }
    this.score.textContent = text;
  }

  select(i) {
    this.chosen = i;
    [...this.list.children].forEach((item, k) => item.firstChild.setAttribute("aria-pressed", String(k === i)));
    this.dots.forEach((dot, k) => (dot.tabIndex = k === (i ?? 0) ? 0 : -1));
    if (i !== null) {
      const item = this.list.children[i];
      this.list.scrollTop = item.offsetTop - this.list.offsetTop - this.list.clientHeight / 2;
      announce(joined(this.data.uses[i].words));
    }
    this.mark(i);
    this.remember();
  }

  hint(i) {
    this.mark(i ?? this.chosen);
  }

  /** Mark a dot and write its sentence beside it. */
  mark(i) {
    this.dots.forEach((dot, k) => dot.classList.toggle("on", k === i));
    if (i === null) return this.label.replaceChildren();
    const [x, y] = this.places[i];
    const [width] = this.size;
    const { words, position } = this.data.uses[i];
    const room = Math.floor(width / 7.5);
    const text = excerpt(words, position, room);
    const length = text.length * 6.6 + 16;
    const left = Math.max(2, Math.min(width - length - 2, x - length / 2));
    const top = y < 50 ? y + 16 : y - 42;
    this.label.replaceChildren(
      s("rect", { class: "box", x: left, y: top, width: length, height: 26, rx: 6 }),
      s("text", { class: "serif", x: left + length / 2, y: top + 13.5, "font-size": 13.5, "text-anchor": "middle", "dominant-baseline": "central" }, text),
    );
  }

  dotKey(event, i) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.select(i === this.chosen ? null : i);
    }
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    // The nearest dot in that direction.
    const [x, y] = this.places[i];
    let best = null;
    this.places.forEach(([u, v], k) => {
      const ahead = (u - x) * step[0] + (v - y) * step[1];
      const aside = Math.abs((u - x) * step[1]) + Math.abs((v - y) * step[0]);
      const cost = ahead + 2 * aside;
      if (k !== i && ahead > 0.5 && (best === null || cost < best[0])) best = [cost, k];
    });
    const next = best?.[1] ?? (i + (step[0] + step[1] > 0 ? 1 : this.places.length - 1)) % this.places.length;
    this.select(next);
    this.dots[next].focus();
  }

  key(event) {
    if (!["PageUp", "PageDown"].includes(event.key)) return;
    event.preventDefault();
    this.glide(Math.max(0, Math.min(this.data.planes.length - 1, Math.round(this.layer) + (event.key === "PageUp" ? 1 : -1))));
  }

  toggle() {
    if (this.#timer) return this.stop();
    const top = this.data.planes.length - 1;
    this.glide(this.layer >= top - 0.01 ? 0 : top);
  }

  /** Move through the layers, at once where motion is not wanted. */
  glide(target) {
    this.stop();
    if (stillness()) {
      this.move(target);
      this.remember();
      return;
    }
    const from = this.layer;
    const started = performance.now();
    const duration = 1100 * Math.max(0.6, Math.abs(target - from));
    this.play.textContent = "❚❚ Stop";
    const frame = (now) => {
      const t = Math.max(0, Math.min(1, (now - started) / duration));
      this.move(t === 1 ? target : from + (target - from) * (t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) ** 2));
      if (t < 1) this.#timer = requestAnimationFrame(frame);
      else {
        this.stop();
        this.remember();
      }
    };
    this.#timer = requestAnimationFrame(frame);
  }

  stop() {
    cancelAnimationFrame(this.#timer);
    this.#timer = 0;
    this.play.textContent = "▶ Play";
  }

  remember() {
    if (!this.data) return;
    const own = this.set === OWN;
    this.app.remember("uses", {
      word: this.data.word,
      sentences: own ? this.text.value : undefined,
      layer: Number(this.layer.toFixed(2)),
      color: this.coloring === "clusters" ? "clusters" : undefined,
      use: this.chosen,
    });
  }

  table() {
    const { uses, planes } = this.data;
    const { groups, names } = this.groups();
    const layer = Math.round(this.layer);
    return plainTable(`Coordinates in ${this.app.layerNames[layer]}`, ["Sentence", "Group", "x", "y"],
      uses.map((use, i) => [joined(use.words), names[groups[i]] ?? "", ...planes[layer].points[i].map((c) => Number(c.toFixed(3)))]));
  }

  json() {
    const { word, uses, senses, planes } = this.data;
    const { groups } = this.groups();
    return {
      model: this.app.model.name, word, layer: this.layer,
      uses: uses.map((use, i) => ({
        words: use.words, position: use.position, sense: senses[i] || undefined, group: groups[i],
        points: Object.fromEntries(planes.map(({ points }, j) => [this.app.layerNames[j], points[i].map((c) => Number(c.toFixed(5)))])),
      })),
    };
  }
}

function parseLines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const found = /^([\p{L}\d-]{1,20}):\s+(.+)$/u.exec(line);
    return found ? [found[1], found[2]] : ["", line];
  });
}

/** The word and as much of its sentence as fits. */
function excerpt(words, position, room) {
  let [from, to] = [position, position + 1];
  const text = () => `${from ? "… " : ""}${joined(words.slice(from, to))}${to < words.length ? " …" : ""}`;
  for (let grown = true; grown; ) {
    grown = false;
    if (from > 0) {
      from--;
      if (text().length <= room) grown = true;
      else from++;
    }
    if (to < words.length) {
      to++;
      if (text().length <= room) grown = true;
      else to--;
    }
  }
  return text();
}
