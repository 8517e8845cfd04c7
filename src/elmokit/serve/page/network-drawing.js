// The drawing of the network with the numbers of one word in it, from the characters down to the mix.

import { s } from "./dom.js";
import { heat, level, LEVELS } from "./colors.js";
import { strongest } from "./network-stages.js";

const PAD = 14;

/** Draw all steps; those after the current one are pale. */
export function drawNetwork({ trace, words, position, data, shares, stages, stage, width, onstage }) {
  const svg = s("svg", { role: "img", "aria-label": `The network and the numbers of ${words[position]}: ${stages.map(({ title }) => title).join(", ")}. Now: ${stages[stage].title}.` });
  const tops = [];
  let y = 0;
  const drawing = { trace, words, position, data, shares, inner: width - 2 * PAD };
  stages.forEach((each, k) => {
    if (k) {
      svg.append(s("path", { class: "flow", d: `M${width / 2} ${y}v18m-5 -6l5 6l5 -6`, opacity: k > stage ? 0.3 : 1 }));
      y += 24;
    }
    const group = s("g", { transform: `translate(${PAD} ${y + PAD})`, opacity: k > stage ? 0.22 : 1 });
    const height = DRAW[each.kind](group, drawing, each) + 2 * PAD;
    const frame = s("rect", { class: k === stage ? "frame now" : "frame", x: 1.5, y: y + 1.5, width: width - 3, height: height - 3, rx: 12 });
    const target = s("rect", { x: 0, y, width, height, fill: "transparent", cursor: "pointer", onclick: () => onstage(k) });
    svg.append(frame, group, target);
    tops.push([y, height]);
    y += height;
  });
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${y}`, width, height: y })) svg.setAttribute(name, value);
  return { svg, tops };
}

const DRAW = { characters, filters, highway, projection, lstm, mix };

function title(group, text, note) {
  group.append(
    s("text", { class: "serif", x: 0, y: 12, "font-size": 15, "font-weight": 600 }, text),
    note ? s("text", { class: "soft", x: 0, y: 29, "font-size": 12 }, note) : "",
  );
}

/** Numbers as squares in columns from top to bottom; squares of one color are one path. */
function grid(group, values, { x, y, rows, cell, scale }) {
  const largest = scale ?? (Math.max(...values.map(Math.abs)) || 1);
  const paths = new Map();
  const inner = (cell > 5 ? cell - 0.8 : cell - 0.3).toFixed(2);
  values.forEach((value, i) => {
    const key = level(value / largest);
    const left = (x + Math.floor(i / rows) * cell).toFixed(2), top = (y + (i % rows) * cell).toFixed(2);
    paths.set(key, `${paths.get(key) ?? ""}M${left} ${top}h${inner}v${inner}h-${inner}z`);
  });
  group.append(...[...paths].map(([key, d]) => s("path", { d, fill: heat(key / LEVELS) })));
  return [Math.ceil(values.length / rows) * cell, rows * cell];
}

/** The number of rows with which a grid is as wide as there is room, for cells of a good size. */
function fitting(count, room, cell = 6) {
  const rows = Math.max(4, Math.ceil((count * cell) / room));
  return { rows, cell: Math.min(9, room / Math.ceil(count / rows)) };
}

function characters(group, { trace, inner }) {
  title(group, "Characters", "each with its row of the character table");
  const { embedding } = trace.arrays;
  const size = embedding.shape[1];
  const step = Math.min(46, inner / trace.characters.length);
  const cell = Math.max(3, Math.min(7, step * 0.5));
  trace.characters.forEach((label, i) => {
    const x = i * step;
    const box = Math.min(34, step - 4);
    group.append(
      s("rect", { class: "box", x, y: 42, width: box, height: 34, rx: 6 }),
      s("text", { class: "mono", x: x + box / 2, y: 59, "font-size": Math.min(17, step * 0.55), "text-anchor": "middle", "dominant-baseline": "central" }, label),
    );
    if (step > 26) group.append(s("text", { class: "soft", x: x + box / 2, y: 90, "font-size": 10, "text-anchor": "middle" }, String(trace.ids[i])));
    grid(group, embedding.slice(i * size, (i + 1) * size), { x: x + box / 2 - cell / 2, y: 98, rows: size, cell, scale: Math.max(...embedding.map(Math.abs)) });
  });
  return 98 + size * cell;
}

function filters(group, { trace, inner }) {
  const all = trace.arrays.filters;
  title(group, `${all.length} filters`, inner > 460 ? "the strongest match of each, by how many characters it reads" : "strongest match of each, by width");
  const gap = 8;
  const { rows, cell } = fitting(all.length, inner - gap * trace.filters.length, 7);
  let x = 0, start = 0;
  const scale = Math.max(...all);
  for (const [wide, count] of trace.filters) {
    const [across] = grid(group, all.slice(start, start + count), { x, y: 56, rows, cell, scale });
    group.append(s("text", { class: "soft", x, y: 48, "font-size": 11 }, across > 60 ? `${wide} ${wide === 1 ? "character" : "characters"}` : String(wide)));
    x += across + gap;
    start += count;
  }
  const bottom = 56 + rows * cell + 20;
  const found = strongest(trace, inner > 460 ? 4 : 3).map(({ window, value }) => `${window} ${value.toFixed(1)}`);
  group.append(s("text", { class: "soft", x: 0, y: bottom, "font-size": 12 }, "Strongest: "), s("text", { class: "mono", x: 66, y: bottom, "font-size": 12 }, found.join("   ")));
  return bottom + 4;
}

function highway(group, { trace, inner }, { number, title: name }) {
  const gate = trace.arrays[`highway.${number}.gate`];
  const out = trace.arrays[`highway.${number}.out`];
  title(group, name);
  return pairOf(group, inner, 26, [
    [inner > 460 ? "Gates: full color is open, pale lets the old number pass" : "Gates: full color is open", gate, 1],
    ["The numbers after it", out, undefined],
  ]);
}

/** Two grids side by side, or one below the other where there is little room. */
function pairOf(group, inner, y, [first, second]) {
  const beside = inner > 520;
  const room = beside ? (inner - 24) / 2 : inner;
  let bottom = y;
  [first, second].forEach(([label, values, scale], i) => {
    const x = beside ? i * (room + 24) : 0;
    const top = beside ? y : bottom + (i ? 12 : 0);
    group.append(s("text", { class: "soft", x, y: top + 8, "font-size": 12 }, label));
    const { rows, cell } = fitting(values.length, room);
    grid(group, values, { x, y: top + 16, rows, cell, scale });
    bottom = Math.max(bottom, top + 16 + rows * cell);
  });
  return bottom;
}

function projection(group, { trace, inner }) {
  const { word } = trace.arrays;
  title(group, "Projection: layer 0", `${word.length} numbers, the same in every sentence`);
  const { rows, cell } = fitting(word.length, Math.min(inner, 460), 9);
  grid(group, word, { x: 0, y: 40, rows, cell });
  return 40 + rows * cell;
}

function lstm(group, { trace, words, position, inner }, { layer, title: name }) {
  title(group, name);
  const beside = inner > 520;
  const room = beside ? (inner - 24) / 2 : inner;
  let bottom = 26;
  ["forward", "backward"].forEach((side, i) => {
    const x = beside ? i * (room + 24) : 0;
    const top = beside ? 26 : bottom + (i ? 16 : 0);
    const get = (part) => trace.arrays[`${side}.${layer}.${part}`];
    const read = side === "forward" ? words.slice(0, position) : words.slice(position + 1).reverse();
    const seen = read.length ? shorten(read, Math.floor(room / 7) - 16) : "the start mark";
    group.append(
      s("text", { x, y: top + 8, "font-size": 12.5, "font-weight": 600 }, side === "forward" ? "Forward →" : "← Backward"),
      s("text", { class: "soft", x: x + 92, y: top + 8, "font-size": 12 }, `has read: ${seen}`),
    );
    let y = top + 22;
    ["forget", "input", "output"].forEach((gate, k) => {
      const value = get(gate).reduce((a, b) => a + b, 0) / get(gate).length;
      const wide = room / 3 - 10;
      const left = x + k * (room / 3);
      group.append(
        s("rect", { class: "bar-back", x: left, y, width: wide, height: 7, rx: 3.5 }),
        s("rect", { class: "bar", x: left, y, width: Math.max(2, wide * value), height: 7, rx: 3.5 }),
        s("text", { class: "soft", x: left, y: y + 20, "font-size": 11 }, `${{ forget: "keep", input: "take in", output: "show" }[gate]} ${Math.round(100 * value)} %`),
      );
    });
    y += 34;
    const cells = get("cell");
    const shape = fitting(cells.length, room, 5);
    group.append(s("text", { class: "soft", x, y: y + 6, "font-size": 11 }, `memory: ${cells.length} cells`));
    grid(group, cells, { x, y: y + 13, ...shape });
    y += 13 + shape.rows * shape.cell + 14;
    const out = get("out");
    const outShape = fitting(out.length, room, 8);
    group.append(s("text", { class: "soft", x, y: y + 4, "font-size": 11 }, `output: ${out.length} numbers`));
    grid(group, out, { x, y: y + 11, ...outShape });
    bottom = Math.max(bottom, y + 11 + outShape.rows * outShape.cell);
  });
  return bottom;
}

function shorten(words, room) {
  let text = "";
  for (let i = words.length - 1; i >= 0; i--) {
    const longer = text ? `${words[i]} ${text}` : words[i];
    if (longer.length > room && text) return `… ${text}`;
    text = longer;
  }
  return text;
}

function mix(group, { data, position, shares, words, inner }) {
  title(group, "Mix: the ELMo vector");
  const { layers, count, dim } = data;
  const size = words.length * dim;
  const mixed = new Float32Array(dim);
  const label = 118;
  const room = inner - label;
  let y = 26;
  const row = (name, vector, y, rows) => {
    const shape = { rows, cell: Math.min(9, room / Math.ceil(dim / rows)) };
    group.append(s("text", { x: 0, y: y + (rows * shape.cell) / 2, "font-size": 12.5, "dominant-baseline": "central" }, name));
    grid(group, vector, { x: label, y, ...shape });
    return rows * shape.cell;
  };
  const rows = Math.max(2, Math.ceil((dim * 6) / room));
  for (let j = 0; j < count; j++) {
    const vector = layers.slice(j * size + position * dim, j * size + (position + 1) * dim);
    vector.forEach((value, i) => (mixed[i] += shares[j] * value));
    y += row(`${Math.round(100 * shares[j])} % × layer ${j}`, vector, y, rows) + 8;
  }
  group.append(s("line", { class: "rule", x1: 0, x2: inner, y1: y + 1, y2: y + 1 }));
  y += 11;
  y += row(`= “${words[position].length > 11 ? `${words[position].slice(0, 10)}…` : words[position]}” here`, mixed, y, rows);
  return y;
}
