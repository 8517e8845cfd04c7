// Marks of groups: each has a color and a shape, so that color alone never decides.

import { s } from "./dom.js";
import { groupColor, SHAPES } from "./colors.js";

const PATHS = {
  square: "M-5 -5h10v10h-10z",
  triangle: "M0 -6.5L6.2 5H-6.2z",
  diamond: "M0 -7L7 0L0 7L-7 0z",
  cross: "M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
};

/** The mark of a group, around the origin. */
export function symbol(group) {
  const shape = SHAPES[group % SHAPES.length];
  const fill = groupColor(group);
  if (shape === "circle") return s("circle", { r: 5.6, style: { fill } });
  if (shape === "ring") return s("circle", { r: 4.6, style: { fill: "none", stroke: fill, strokeWidth: 2.6 } });
  return s("path", { d: PATHS[shape], style: { fill } });
}

/** The mark of a group as a little picture in the text. */
export function swatch(group) {
  return s("svg", { viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true" }, symbol(group));
}
