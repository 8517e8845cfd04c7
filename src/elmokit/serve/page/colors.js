// Colors that depend on the theme: they are read from the style sheet, and read again when it changes.

const STOPS = ["--heat-0", "--heat-1", "--heat-2"];
const COLD = ["--heat-0", "--cold-1", "--cold-2"];
export const LEVELS = 24;
/** Shapes that tell groups apart without their color. */
export const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "ring"];

let ramps = null;

/** Forget the colors of the theme before. */
export function themeChanged() {
  ramps = null;
}

/** Value of a custom property of the style sheet. */
export function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function parse(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function ramp(names) {
  const stops = names.map((name) => parse(variable(name)));
  return Array.from({ length: LEVELS + 1 }, (_, level) => {
    const place = (level / LEVELS) * (stops.length - 1);
    const i = Math.min(Math.floor(place), stops.length - 2);
    const rgb = stops[i].map((c, k) => Math.round(c + (place - i) * (stops[i + 1][k] - c)));
    return `#${rgb.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
  });
}

/** Number of the color of a value from −1 to 1: −LEVELS to LEVELS. */
export function level(value) {
  return Math.round(Math.max(-1, Math.min(1, value)) * LEVELS);
}

/** Color of a value from −1 to 1; 0 is the color of the paper. */
export function heat(value) {
  ramps ??= { warm: ramp(STOPS), cold: ramp(COLD) };
  const k = level(value);
  return k >= 0 ? ramps.warm[k] : ramps.cold[-k];
}

/** Black or white, whichever is easier to read on a color; the warm black of the page. */
export function ink(color) {
  const [r, g, b] = parse(color).map((c) => (c / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.24 ? "#16202a" : "#ffffff";
}

/** Color of a group. */
export function groupColor(group) {
  return variable(`--group-${group % 6}`);
}
