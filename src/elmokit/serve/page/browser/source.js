// The page's numbers without a server: the model as ONNX, run by onnxruntime-web in this browser.
//
// The layers of a sentence come from onnxruntime. What needs more than layers (guesses, the steps of
// the network, neighbors) is computed here, from files that are loaded when a view first needs them.

import { SourceError } from "../source.js";
import { mixLayers, softmax, unitRows } from "../linalg.js";
import { tokenize } from "./tokenizer.js";
import { encodeSentences } from "./characters.js";
import { readTensors } from "./tensors.js";
import { topLayer, traceWord } from "./trace.js";
import { guessWord } from "./guess.js";

const FILES = new URL("../model/", import.meta.url);
const RUNTIME = new URL("../runtime/", import.meta.url);
const MOST_WORDS = 200;
const WORDS_AT_ONCE = 120;

/** Answers like those of a server, computed here. */
export class BrowserSource {
  #files = new Map();
  #layers = new Map();

  /** Load the model; the page shows how far it is. */
  static async open() {
    const source = new BrowserSource();
    const show = progressLine();
    const [runtime, info, about, graph] = await Promise.all([
      import(new URL("ort.wasm.min.mjs", RUNTIME)),
      fetchFile("info.json").then((data) => JSON.parse(new TextDecoder().decode(data))),
      fetchFile("model.onnx.json").then((data) => JSON.parse(new TextDecoder().decode(data))),
      fetchFile("model.onnx", show),
    ]);
    runtime.env.wasm.numThreads = 1; // more need headers that most static hosts do not send
    runtime.env.wasm.wasmPaths = RUNTIME.href;
    source.runtime = runtime;
    source.about = about;
    source.facts = info;
    source.session = await runtime.InferenceSession.create(graph);
    show(null);
    return source;
  }

  async info() {
    return this.facts;
  }

  async layers(model, { sentence, words = tokenize(sentence) }) {
    if (words.length > MOST_WORDS)
      throw new SourceError(`The sentence has ${words.length} words; the page shows at most ${MOST_WORDS}.`);
    const [layers] = await this.#embed([words]);
    return { words, layers, count: this.about.layers, dim: this.about.dim };
  }

  async uses(model, word, sentences) {
    const folded = word.toLowerCase();
    const found = [];
    let without = 0;
    sentences.forEach((text, sentence) => {
      const words = tokenize(text);
      const positions = words.flatMap((each, i) => (each.toLowerCase() === folded ? [i] : []));
      if (!positions.length) without++;
      for (const position of positions) found.push({ words, position, sentence });
    });
    if (!word || !found.length)
      throw new SourceError(`“${word}” is in none of the ${sentences.length} sentences; give sentences that have it.`);
    const { layers: count, dim } = this.about;
    const vectors = await this.#embed(found.map(({ words }) => words));
    const layers = new Float32Array(count * found.length * dim);
    found.forEach(({ words, position }, i) => {
      for (let j = 0; j < count; j++)
        layers.set(vectors[i].subarray((j * words.length + position) * dim, (j * words.length + position + 1) * dim), (j * found.length + i) * dim);
    });
    return { words: found, uses: found, layers, count, dim, without };
  }

  async guess(model, words, position, others = []) {
    if (!this.facts.predicts) throw new SourceError("This model cannot guess words: its files lack the softmax.");
    const [output, network, vocabulary] = await Promise.all([
      this.#tensors("softmax.safetensors"), this.#tensors("network.safetensors"), this.#vocabulary(),
    ]);
    // The forward direction predicts from the word before the place, or from the mark.
    const top = topLayer(network.tensors, this.about, ["<S>", ...words, "</S>"]);
    return guessWord({ tensors: output.tensors, vocabulary, top, dim: this.about.dim, position, words, others });
  }

  async neighbors(model, words, position, { mix, number = 10 }) {
    const [corpus, spelled] = await Promise.all([this.#corpus(), this.#tensors("spelled.safetensors")]);
    const { layers: count, dim } = this.about;
    const [layers] = await this.#embed([words]);
    const own = Array.from({ length: count }, (_, j) => layers.subarray((j * words.length + position) * dim, (j * words.length + position + 1) * dim));
    const shares = softmax(mix);
    const query = unitRows(mixLayers(Float32Array.from(own.flatMap((row) => [...row])), count, shares), dim);
    const near = nearestUses(corpus, shares, query, dim, words, number);
    const half = dim / 2;
    const spelling = unitRows(own[0].slice(0, half), half);
    const word = words[position].toLowerCase();
    const cosine = products(spelled.tensors.vectors, spelling, half);
    const close = [...cosine.keys()].sort((a, b) => cosine[b] - cosine[a] || a - b);
    return {
      context: near,
      uses: corpus.places.length,
      sentences: corpus.sentences.length,
      static: close.filter((i) => spelled.words[i].toLowerCase() !== word).slice(0, number).map((i) => [spelled.words[i], cosine[i]]),
      static_words: spelled.words.length,
    };
  }

  async trace(model, words, position) {
    const { tensors } = await this.#tensors("network.safetensors");
    return traceWord(tensors, this.about, words, position);
  }

  async predict() {
    throw new SourceError("Task models need a server: start one with `elmo serve --task NAME=DIR`.");
  }

  /** All layers of sentences: one Float32Array (layers × words × dim) each. */
  async #embed(sentences) {
    const results = [];
    for (let start = 0; start < sentences.length; ) {
      let end = start, size = 0;
      while (end < sentences.length && (end === start || size < WORDS_AT_ONCE)) size += sentences[end++].length;
      results.push(...(await this.#run(sentences.slice(start, end))));
      start = end;
      if (start < sentences.length) await new Promise((resolve) => setTimeout(resolve)); // let the page breathe
    }
    return results;
  }

  async #run(sentences) {
    const key = JSON.stringify(sentences);
    if (this.#layers.has(key)) return this.#layers.get(key);
    const { ids, lengths, longest, width } = encodeSentences(sentences, this.about);
    const { Tensor } = this.runtime;
    const { layers } = await this.#one(() => this.session.run({
      character_ids: new Tensor("int64", ids, [sentences.length, longest, width]),
      lengths: new Tensor("int64", lengths, [sentences.length]),
    }, ["layers"]));
    const { layers: count, dim } = this.about;
    const results = sentences.map((words, b) => {
      const own = new Float32Array(count * words.length * dim);
      for (let j = 0; j < count; j++) {
        const from = (j * sentences.length + b) * longest * dim;
        own.set(layers.data.subarray(from, from + words.length * dim), j * words.length * dim);
      }
      return own;
    });
    this.#layers.set(key, results);
    if (this.#layers.size > 64) this.#layers.delete(this.#layers.keys().next().value);
    return results;
  }

  #queue = Promise.resolve();

  /** A session runs one thing at a time. */
  #one(action) {
    const result = this.#queue.then(action);
    this.#queue = result.catch(() => {});
    return result;
  }

  #once(name, load) {
    if (!this.#files.has(name)) {
      const promise = load();
      promise.catch(() => this.#files.delete(name));
      this.#files.set(name, promise);
    }
    return this.#files.get(name);
  }

  /** Arrays of a file, and the words that its metadata lists. */
  #tensors(name) {
    return this.#once(name, async () => {
      const { tensors, metadata } = readTensors(await fetchFile(name));
      return { tensors, words: metadata.words ? JSON.parse(metadata.words) : null, metadata };
    });
  }

  #vocabulary() {
    return this.#once("vocab.txt", async () => {
      const words = new TextDecoder().decode(await fetchFile("vocab.txt")).split("\n");
      words.pop();
      return { words, index: new Map(words.map((word, i) => [word, i])) };
    });
  }

  #corpus() {
    return this.#once("corpus", async () => {
      const { tensors, metadata } = await this.#tensors("corpus.safetensors");
      const sentences = JSON.parse(metadata.sentences);
      const places = sentences.flatMap((words, i) => words.map((_, position) => [i, position]));
      return { sentences, places, tensors };
    });
  }
}

/** The nearest uses of the corpus, at most one per sentence. */
function nearestUses({ sentences, places, tensors }, shares, query, dim, words, number) {
  const { spelling, form, context } = tensors; // (U, P), (N,), (L, N, D)
  const half = dim / 2;
  const count = places.length;
  const cosine = new Float32Array(count);
  for (let n = 0; n < count; n++) {
    let dot = 0, square = 0;
    const start = form[n] * half;
    for (let d = 0; d < dim; d++) {
      let value = shares[0] * spelling[start + (d % half)];
      for (let j = 1; j < shares.length; j++) value += shares[j] * context[((j - 1) * count + n) * dim + d];
      dot += value * query[d];
      square += value * value;
    }
    cosine[n] = dot / Math.max(Math.sqrt(square), 1e-12);
  }
  const own = JSON.stringify(words);
  const seen = new Set();
  const found = [];
  for (const n of [...cosine.keys()].sort((a, b) => cosine[b] - cosine[a] || a - b)) {
    const [sentence, position] = places[n];
    if (seen.has(sentence) || JSON.stringify(sentences[sentence]) === own) continue;
    seen.add(sentence);
    found.push({ words: sentences[sentence], position, similarity: cosine[n] });
    if (found.length === number) break;
  }
  return found;
}

function products(rows, vector, dim) {
  const out = new Float32Array(rows.length / dim);
  for (let r = 0; r < out.length; r++) {
    let sum = 0;
    for (let d = 0; d < dim; d++) sum += rows[r * dim + d] * vector[d];
    out[r] = sum;
  }
  return out;
}

async function fetchFile(name, onprogress) {
  const response = await fetch(new URL(name, FILES));
  if (!response.ok) throw new SourceError(`The page lacks ${name} (${response.status}); build it again.`);
  if (!onprogress || !response.body) return response.arrayBuffer();
  const total = Number(response.headers.get("Content-Length")) || 0;
  const parts = [];
  let size = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    onprogress(size, total);
  }
  return new Blob(parts).arrayBuffer();
}

/** A line below the title that says how much of the model is there. */
function progressLine() {
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.textContent = "Loading the model, once; then it runs in this browser…";
  document.getElementById("welcome")?.append(line);
  return (size, total) => {
    if (size === null) return line.remove();
    const megabytes = (size / 1e6).toFixed(1);
    line.textContent = `Loading the model, once; then it runs in this browser: ${megabytes}${total ? ` of ${(total / 1e6).toFixed(1)}` : ""} MB`;
  };
}
