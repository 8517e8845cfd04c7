// One word on its way through the network, with every number; like network_trace.py.

import { characterIds } from "./characters.js";

const SHOWN = { 259: "‹", 260: "›", 261: "·" };
const vectorCache = new WeakMap();
const sentences = new Map(); // the last sentences that were read, so that the next word is there at once

/** Facts and arrays of a word, as the server's `/page/trace` has them. */
export function traceWord(weights, about, words, position) {
  const { header, arrays } = traceCharacters(weights, about, words[position]);
  const { inputs, layers } = readSentence(weights, about, ["<S>", ...words, "</S>"]);
  const { projected, ...kept } = arrays;
  kept.word = inputs[position + 1];
  for (const { name, side, steps } of layers) {
    const step = side === 0 ? position + 1 : words.length - position;
    for (const [part, values] of Object.entries(steps[step])) kept[`${name}.${part}`] = values;
  }
  return { header, arrays: kept };
}

/** Top layer (T × D) at marks and words, both directions; the words contain the marks. */
export function topLayer(weights, about, marked) {
  const half = about.dim / 2;
  const out = new Float32Array(marked.length * about.dim);
  for (const { side, layer, steps } of readSentence(weights, about, marked).layers) {
    if (layer !== about.layers - 2) continue;
    steps.forEach((step, t) => out.set(step.out, (side === 0 ? t : marked.length - 1 - t) * about.dim + side * half));
  }
  return out;
}

/** Word vectors of a marked sentence, and all steps of all LSTM layers in both directions. */
function readSentence(weights, about, marked) {
  const key = JSON.stringify(marked);
  if (!sentences.has(key)) {
    const inputs = marked.map((word) => wordVector(weights, about, word));
    const layers = ["forward", "backward"].flatMap((direction, side) => {
      let reads = side === 0 ? inputs : [...inputs].reverse();
      return Array.from({ length: about.layers - 1 }, (_, layer) => {
        const steps = lstm(weights, about, direction, layer, reads);
        reads = steps.map((step) => step.out);
        return { name: `${direction}.${layer}`, side, layer, steps };
      });
    });
    sentences.set(key, { inputs, layers });
    if (sentences.size > 3) sentences.delete(sentences.keys().next().value);
  }
  return sentences.get(key);
}

function wordVector(weights, about, word) {
  if (!vectorCache.has(weights)) vectorCache.set(weights, new Map());
  const cache = vectorCache.get(weights);
  if (!cache.has(word)) cache.set(word, traceCharacters(weights, about, word).arrays.projected);
  return cache.get(word);
}

function traceCharacters(weights, about, word) {
  const cnn = about.config.char_cnn;
  const ids = characterIds(word, about);
  const length = ids.length;
  const table = weights["characters.embedding"];
  const size = table.shape[1];
  const padded = [...ids, ...Array(about.max_characters - length).fill(about.characters.padding)];
  const rows = padded.map((id) => table.subarray((id - 1) * size, id * size)); // ids count from 1
  const total = cnn.filters.reduce((sum, [, count]) => sum + count, 0);
  let x = new Float32Array(total);
  const windows = new Float32Array(total);
  let first = 0;
  cnn.filters.forEach(([width, count], i) => {
    const kernel = weights[`characters.convolution.${i}.weight`], bias = weights[`characters.convolution.${i}.bias`];
    const places = Math.min(length + 1, padded.length - width + 1);
    const best = new Float32Array(count).fill(-Infinity);
    for (let at = 0; at < places; at++) {
      const scores = new Float32Array(count);
      for (let w = 0; w < width; w++)
        for (let e = 0; e < size; e++) {
          const value = rows[at + w][e], start = (w * size + e) * count;
          for (let f = 0; f < count; f++) scores[f] += value * kernel[start + f];
        }
      for (let f = 0; f < count; f++)
        if (scores[f] > best[f]) {
          best[f] = scores[f];
          windows[first + f] = at;
        }
    }
    for (let f = 0; f < count; f++) x[first + f] = activate(best[f] + bias[f], cnn.activation);
    first += count;
  });
  const embedding = Float32Array.from(rows.slice(0, length).flatMap((row) => [...row]));
  embedding.shape = [length, size];
  const arrays = { embedding, filters: x, windows };
  for (let k = 0; k < cnn.highways; k++) {
    const name = `characters.highway.${k}`;
    const gate = affine(x, weights[`${name}.carry.weight`], weights[`${name}.carry.bias`]).map(sigmoid);
    const fresh = affine(x, weights[`${name}.transform.weight`], weights[`${name}.transform.bias`]);
    x = x.map((old, f) => gate[f] * Math.max(fresh[f], 0) + (1 - gate[f]) * old);
    arrays[`highway.${k}.gate`] = gate;
    arrays[`highway.${k}.out`] = x;
  }
  arrays.projected = cnn.projection ? affine(x, weights["characters.projection.weight"], weights["characters.projection.bias"]) : x;
  const header = {
    characters: ids.map((id) => SHOWN[id] ?? (id > 33 && id < 128 ? String.fromCharCode(id - 1) : id > 256 ? "S" : (id - 1).toString(16).padStart(2, "0"))),
    ids: ids.map((id) => id - 1),
    filters: cnn.filters,
    truncated: new TextEncoder().encode(word).length > about.characters.most_per_word,
  };
  return { header, arrays };
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const activate = (x, name) => (name === "relu" ? Math.max(x, 0) : Math.tanh(x));
const clip = (x, bound) => (bound ? Math.max(-bound, Math.min(bound, x)) : x);

/** x · W + b with W (inputs × outputs), or added to `out`. */
function affine(x, weight, bias, out = null) {
  const count = weight.shape[1];
  out ??= bias ? Float32Array.from(bias) : new Float32Array(count);
  for (let i = 0; i < x.length; i++) {
    const value = x[i];
    if (value === 0) continue;
    for (let k = 0, at = i * count; k < count; k++, at++) out[k] += value * weight[at];
  }
  return out;
}

/** All steps of one layer in one direction: gates, cells and outputs. */
function lstm(weights, about, direction, layer, inputs) {
  const options = about.config.lstm;
  const get = (part) => weights[`${direction}.${layer}.${part}`];
  const [wx, wh, bias, projection] = [get("input.weight"), get("recurrent.weight"), get("bias"), get("projection.weight")];
  const cells = options.cells;
  const side = direction === "forward" ? 0 : 1;
  const settled = (name, size) => weights[`settled.${name}`].slice((layer * 2 + side) * size, (layer * 2 + side + 1) * size);
  let h = settled("hidden", options.width), cell = settled("cell", cells);
  return inputs.map((x) => {
    const gates = affine(x, wx, bias);
    affine(h, wh, null, gates);
    const memory = cell;
    const step = { memory };
    for (const part of ["input", "candidate", "forget", "output", "cell"]) step[part] = new Float32Array(cells);
    const inner = new Float32Array(cells);
    for (let k = 0; k < cells; k++) {
      const i = (step.input[k] = sigmoid(gates[k]));
      const j = (step.candidate[k] = Math.tanh(gates[cells + k]));
      const f = (step.forget[k] = sigmoid(gates[2 * cells + k] + 1));
      const o = (step.output[k] = sigmoid(gates[3 * cells + k]));
      step.cell[k] = clip(f * memory[k] + i * j, options.cell_clip);
      inner[k] = o * Math.tanh(step.cell[k]);
    }
    cell = step.cell;
    h = projection ? affine(inner, projection).map((value) => clip(value, options.projection_clip)) : inner;
    step.out = options.skip && layer > 0 ? h.map((value, k) => value + x[k]) : h;
    return step;
  });
}
