// The steps of a word through the network, each with a title and what its numbers say.

import { fixed, percent } from "./dom.js";

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const quoted = (words, most = 6) => (words.length > most ? `… ${words.slice(-most).join(" ")}` : words.join(" "));

/** Return the steps: characters, filters, highways, projection, LSTM layers, mix. */
export function stagesOf({ trace, words, position, data, shares }) {
  const { arrays, characters, filters } = trace;
  const word = words[position];
  const before = words.slice(0, position);
  const after = words.slice(position + 1);
  const stages = [
    {
      kind: "characters",
      title: "Characters",
      text: [
        `The model has no list of words to read. “${word}” is ${characters.length - 2} ${characters.length === 3 ? "character" : "characters"} between the two marks ‹ and ›, so any word can be read, also one nobody has written before.`,
        `Each character is looked up in a table: ${arrays.embedding.shape[1]} numbers, the column below it.`,
        ...(trace.truncated ? ["The word is too long: its end is not read."] : []),
      ],
    },
    {
      kind: "filters",
      title: "Filters",
      text: [
        `${filters.reduce((a, [, n]) => a + n, 0)} filters slide over the word, ${filters[0][0]} to ${filters.at(-1)[0]} characters wide. Each keeps its strongest match, wherever in the word that is.`,
        `The strongest here: ${strongest(trace).map(({ window, value }) => `“${window}” ${fixed(value, 1)}`).join(", ")}.`,
      ],
    },
  ];
  for (let k = 0; arrays[`highway.${k}.gate`]; k++) {
    const gate = arrays[`highway.${k}.gate`];
    stages.push({
      kind: "highway",
      number: k,
      title: arrays["highway.1.gate"] ? `Highway ${k + 1}` : "Highway",
      text: [
        "A highway layer lets the matches interact. For each number a gate decides how much is computed anew and how much passes by unchanged.",
        `Here the gates let ${percent(mean(gate))} be new on average, and ${percent(gate.filter((g) => g > 0.5).length / gate.length)} of them are more than half open.`,
      ],
    });
  }
  const width = arrays.word.length;
  stages.push({
    kind: "projection",
    title: "Projection: layer 0",
    text: [
      `${arrays.filters.length} numbers become ${width}. This is the vector of the word by its characters alone: the same in every sentence.`,
      "ELMo uses it twice, once for each direction.",
    ],
  });
  for (let layer = 0; arrays[`forward.${layer}.out`]; layer++) {
    const gates = (side) => Object.entries({ forget: "keeps", input: "takes in", output: "shows" })
      .map(([gate, verb]) => `${verb} ${percent(mean(arrays[`${side}.${layer}.${gate}`]))}`).join(", ");
    stages.push({
      kind: "lstm",
      layer,
      title: `LSTM ${layer + 1}: layer ${layer + 1}`,
      text: [
        `Two networks with a memory read the sentence. The forward one has read ${before.length ? `“${quoted(before)}”` : "nothing yet"}, the backward one ${after.length ? `“${quoted([...after].reverse())}”, from the end` : "nothing yet"}. They never see each other.`,
        `Gates decide what the memory keeps, takes in and shows. On average the forward one ${gates("forward")}; the backward one ${gates("backward")}.`,
        ...(layer > 0 ? ["Its input is added to its output: a shortcut, so that it only has to learn what the layer below does not say."] : []),
      ],
    });
  }
  stages.push({
    kind: "mix",
    title: "Mix: the ELMo vector",
    text: [
      `The layers are added with weights: ${shares.map((share, j) => `${percent(share)} of layer ${j}`).join(", ")}. A task learns weights of its own; grammar is mostly in the lower layers, meaning in the higher ones.`,
      `The result: ${data.dim} numbers for “${word}” in this sentence, and for no other.`,
    ],
  });
  return stages;
}

/** The filters with the largest values, one per window of characters. */
export function strongest(trace, most = 3) {
  const { arrays, characters, filters } = trace;
  const widths = filters.flatMap(([width, count]) => Array(count).fill(width));
  const order = [...arrays.filters.keys()].sort((a, b) => arrays.filters[b] - arrays.filters[a]);
  const found = new Map();
  for (const i of order) {
    const start = arrays.windows[i];
    const window = Array.from({ length: widths[i] }, (_, k) => characters[start + k] ?? "·").join("");
    if (!found.has(window)) found.set(window, { window, start, width: widths[i], filter: i, value: arrays.filters[i] });
    if (found.size === most) break;
  }
  return [...found.values()];
}
