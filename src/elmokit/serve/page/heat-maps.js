// Heat maps of cosines: a large one with words, and a small one for each of the others.

import { s } from "./dom.js";
import { heat, ink, level, LEVELS } from "./colors.js";

const MOST = 60;
const GAP = 24;

/**
 * Draw the maps.
 * @returns {{svg: SVGElement, highlight: (word: number) => void}}
 */
export function drawMaps({ words, maps, names, large, width, onpoint, onchoose }) {
  const count = words.length;
  const shown = Math.min(count, MOST);
  const labels = words.slice(0, shown).map((word) => (word.length > 14 ? `${word.slice(0, 13)}…` : word));
  const narrow = width < 560;
  const letter = narrow ? 12 : 14;
  const longest = Math.max(...labels.map((word) => word.length));
  const left = Math.min(longest * letter * 0.56 + 12, 120);
  const top = Math.min(longest * letter * 0.48 + 12, 100) + 26;
  const smallCount = maps.length - 1;
  const smallSize = narrow ? (width - GAP * (smallCount - 1)) / smallCount : Math.min(150, width * 0.21);
  const room = narrow ? width - left - 8 : width - left - smallSize - 2 * GAP;
  const cell = Math.max(3, Math.min(52, room / shown));
  const side = cell * shown;
  const step = smallSize + 30;
  const height = narrow ? top + side + GAP + step : Math.max(top + side + 4, smallCount * step + 4);
  const total = narrow ? width : left + side + 2 * GAP + smallSize;
  const svg = s("svg", { viewBox: `0 0 ${total} ${height}`, width: total, height, role: "img", "aria-label": `Heat map of the cosines of ${count} words: ${names[large]}, and small maps of the other layers. The numbers are in the table below.` });
  const focusMarks = [];

  const map = (number, x, y, unit, big) => {
    const group = s("g", { transform: `translate(${x} ${y})` });
    group.append(...cells(maps[number], count, shown, unit, big));
    const row = s("rect", { class: "cell-focus", x: 0, width: unit * shown, height: unit });
    const column = s("rect", { class: "cell-focus", y: 0, width: unit, height: unit * shown });
    focusMarks.push([row, column, unit]);
    group.append(row, column);
    const target = s("rect", { width: unit * shown, height: unit * shown, fill: "transparent" });
    const at = (event) => {
      const box = target.getBoundingClientRect();
      return Math.max(0, Math.min(shown - 1, Math.floor(((event.clientY - box.top) / box.height) * shown)));
    };
    target.addEventListener("mousemove", (event) => onpoint(at(event)));
    target.addEventListener("mouseleave", () => onpoint(null));
    target.addEventListener("click", (event) => onchoose(at(event)));
    group.append(target);
    svg.append(group);
  };

  svg.append(s("text", { x: left, y: 14, "font-size": 13, "font-weight": 600 }, names[large]));
  labels.forEach((word, i) => {
    const size = Math.min(letter, Math.max(7, cell * 0.95));
    svg.append(
      s("text", { class: "serif", x: left - 7, y: top + (i + 0.5) * cell, "font-size": size, "text-anchor": "end", "dominant-baseline": "central" }, word),
      s("text", { class: "serif", transform: `translate(${left + (i + 0.5) * cell} ${top - 7}) rotate(-45)`, x: 0, y: 0, "font-size": size }, word),
    );
  });
  map(large, left, top, cell, true);
  let place = 0;
  maps.forEach((_, number) => {
    if (number === large) return;
    const x = narrow ? place * (smallSize + GAP) : left + side + 2 * GAP;
    const y = narrow ? top + side + GAP + 18 : place * step + 22;
    svg.append(s("text", { class: "soft", x, y: y - 7, "font-size": 12 }, names[number]));
    map(number, x, y, smallSize / shown, false);
    place++;
  });
  if (count > shown) svg.append(s("text", { class: "soft", x: total, y: 14, "font-size": 12, "text-anchor": "end" }, `the first ${shown} of ${count} words`));

  const highlight = (word) => {
    for (const [row, column, unit] of focusMarks) {
      for (const mark of [row, column]) mark.style.display = word === null || word >= shown ? "none" : "";
      row.setAttribute("y", word * unit);
      column.setAttribute("x", word * unit);
    }
  };
  return { svg, highlight };
}

/** Cells of the same color are one path: a map has few elements, however many words. */
function cells(map, count, shown, unit, big) {
  const paths = new Map();
  const texts = [];
  const inner = unit > 6 ? unit - 1 : unit + 0.05;
  for (let i = 0; i < shown; i++) {
    for (let k = 0; k < shown; k++) {
      const value = map[i * count + k];
      const key = level(value);
      const x = (k * unit).toFixed(2), y = (i * unit).toFixed(2), w = inner.toFixed(2);
      paths.set(key, `${paths.get(key) ?? ""}M${x} ${y}h${w}v${w}h-${w}z`);
      if (big && unit >= 30) {
        const color = ink(heat(value));
        texts.push(s("text", { x: (k + 0.5) * unit, y: (i + 0.5) * unit, "font-size": Math.min(12, unit * 0.32), "text-anchor": "middle", "dominant-baseline": "central", style: { fill: color }, "pointer-events": "none" },
          value > 0.995 ? "1" : value.toFixed(2).replace("0.", ".").replace("-", "−")));
      }
    }
  }
  return [...[...paths].map(([key, d]) => s("path", { d, fill: heat(key / LEVELS) })), ...texts];
}
