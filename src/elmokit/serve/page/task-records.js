// Predictions of task models as text with marks; the records are those of `elmo task predict --json`.

import { h, percent, needsSpace } from "./dom.js";
import { groupColor } from "./colors.js";

/** Elements that show one prediction. */
export function renderRecord(task, record, texts) {
  const render = { ner, srl, coref, qa, nli: chances, sentiment }[task];
  return render ? render(record, texts) : [h("pre", {}, h("code", {}, JSON.stringify(record, null, 1)))];
}

const colors = new Map();

/** Color of a label: labels keep theirs while the page is open. */
function labelColor(label) {
  if (!colors.has(label)) colors.set(label, colors.size);
  return groupColor(colors.get(label));
}

/** Words with marked spans { start, end, label, chance }, which do not overlap. */
function taggedWords(words, spans) {
  const parts = [];
  const starts = new Map(spans.map((span) => [span.start, span]));
  for (let i = 0; i < words.length; ) {
    const span = starts.get(i);
    const end = span ? span.end : i + 1;
    if (i && needsSpace(words[i - 1], words[i])) parts.push(" ");
    const text = words.slice(i, end).map((word, k) => (k && needsSpace(words[i + k - 1], word) ? ` ${word}` : word)).join("");
    parts.push(span ? mark(text, span) : text);
    i = end;
  }
  return h("p", { class: "tagged" }, ...parts);
}

function mark(text, { label, chance, color }) {
  const own = color ?? labelColor(label);
  return h("mark", {
    class: "span",
    title: chance === undefined ? label : `${label}: ${percent(chance)}`,
    style: { background: `color-mix(in srgb, ${own} 20%, transparent)`, borderBottomColor: own, color: "inherit" },
  }, text, h("small", {}, label));
}

function ner({ words, entities }) {
  return [taggedWords(words, entities.map((each) => ({ ...each, label: each.type, chance: each.confidence })))];
}

function srl({ words, preds }) {
  if (!preds.length) return [taggedWords(words, []), h("p", { class: "note" }, "No verb was found.")];
  return preds.flatMap((pred) => {
    const at = pred.i;
    const verb = { start: at, end: at + 1, label: "verb" };
    const roles = pred.roles.filter(({ start, end }) => !(start <= at && at < end));
    return [
      h("h3", {}, `“${pred.word}”`),
      taggedWords(words, [...roles.map((role) => ({ ...role, label: role.role, chance: role.confidence })), verb]),
    ];
  });
}

/** A function that cuts pieces out of a text by code points, which Python counts. */
function cutter(text) {
  const points = [...text];
  return [(from, to) => points.slice(from, to).join(""), points.length];
}

function coref({ clusters }, [text]) {
  const spans = clusters.flatMap((mentions, number) => mentions.map((each) => ({ start: each.start_char, end: each.end_char, number })));
  const [cut, length] = cutter(text);
  if (!spans.length) return [h("p", { class: "tagged" }, text), h("p", { class: "note" }, "No two places were found to mean the same.")];
  // Mentions may contain others: the longer one is drawn around the shorter.
  spans.sort((a, b) => a.start - b.start || b.end - a.end);
  const build = (from, to, inside) => {
    const parts = [];
    let at = from;
    inside.forEach((span, i) => {
      if (span.start < at || span.end > to) return;
      parts.push(cut(at, span.start));
      const inner = inside.slice(i + 1).filter((each) => each.start >= span.start && each.end <= span.end);
      const color = groupColor(span.number);
      parts.push(h("mark", { class: "span", style: { background: `color-mix(in srgb, ${color} 20%, transparent)`, borderBottomColor: color, color: "inherit" } },
        ...build(span.start, span.end, inner), h("small", {}, String(span.number + 1))));
      at = span.end;
    });
    parts.push(cut(at, to));
    return parts;
  };
  return [h("p", { class: "tagged" }, ...build(0, length, spans)), h("p", { class: "note" }, "Places with the same number mean the same.")];
}

function qa({ answer, others }, [passage]) {
  const [cut, length] = cutter(passage);
  const runners = others.filter(({ text }) => text).slice(0, 3);
  return [
    h("p", { class: "tagged" }, cut(0, answer.start), mark(cut(answer.start, answer.end), { label: "answer", chance: answer.confidence }), cut(answer.end, length)),
    h("p", {}, "Answer: ", h("strong", {}, answer.text), answer.confidence === undefined ? "" : ` (${percent(answer.confidence)})`),
    ...(runners.length ? [h("p", { class: "note" }, `Next: ${runners.map(({ text, confidence }) => (confidence === undefined ? text : `${text} (${percent(confidence)})`)).join("; ")}`)] : []),
  ];
}

function chances({ probabilities }) {
  const rows = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  return [h("div", {}, rows.map(([name, value]) =>
    h("div", { class: "chance" }, h("span", {}, name), h("div", {}, h("i", { style: { width: `${100 * value}%` } })), h("output", {}, percent(value)))))];
}

function sentiment(record) {
  return [taggedWords(record.words, []), ...chances(record)];
}
