// Figures to files. A strict content security policy forbids images from memory, so that a PNG is
// not made by drawing the SVG as an image: its shapes are drawn on a canvas one by one.

import { variable } from "./colors.js";

const STYLES = ["fill", "stroke", "stroke-width", "opacity", "font-family", "font-size", "font-weight", "font-style", "stroke-dasharray"];
const MARGIN = 16;

/** Let the browser save content as a file. */
export function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function size(svg) {
  const box = svg.viewBox.baseVal;
  return [box.width, box.height];
}

/** An SVG document that looks the same without the style sheet of the page. */
export function svgText(svg) {
  const [width, height] = size(svg);
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    if (element !== copy && !["g", "title", "desc"].includes(element.tagName)) {
      for (const name of STYLES) {
        const value = style.getPropertyValue(name);
        if (value && value !== "none" || name === "fill") element.setAttribute(name, value);
      }
    } else if (element.tagName === "g" && style.opacity !== "1") {
      element.setAttribute("opacity", style.opacity);
    }
    for (const name of ["class", "tabindex", "role", "style"]) element.removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${width + 2 * MARGIN} ${height + 2 * MARGIN}`);
  copy.setAttribute("width", width + 2 * MARGIN);
  copy.setAttribute("height", height + 2 * MARGIN);
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x: -MARGIN, y: -MARGIN, width: width + 2 * MARGIN, height: height + 2 * MARGIN, fill: variable("--card") }))
    back.setAttribute(name, value);
  copy.prepend(back);
  return `${new XMLSerializer().serializeToString(copy)}\n`;
}

/** A PNG of a figure, at twice its size. */
export async function svgToPng(svg, scale = 2) {
  const [width, height] = size(svg);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((width + 2 * MARGIN) * scale);
  canvas.height = Math.ceil((height + 2 * MARGIN) * scale);
  const brush = canvas.getContext("2d");
  brush.fillStyle = variable("--card");
  brush.fillRect(0, 0, canvas.width, canvas.height);
  brush.setTransform(scale, 0, 0, scale, MARGIN * scale, MARGIN * scale);
  for (const child of svg.children) paint(brush, child, 1);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function paint(brush, element, opacity) {
  const style = getComputedStyle(element);
  if (style.display === "none" || ["title", "desc"].includes(element.tagName)) return;
  brush.save();
  const move = element.transform?.baseVal.consolidate()?.matrix;
  if (move) brush.transform(move.a, move.b, move.c, move.d, move.e, move.f);
  const visible = opacity * Number(style.opacity || 1);
  if (element.tagName === "g" || element.tagName === "a") {
    for (const child of element.children) paint(brush, child, visible);
  } else {
    brush.globalAlpha = visible;
    if (element.tagName === "text") paintText(brush, element, style);
    else paintShape(brush, shape(element), style);
  }
  brush.restore();
}

const attribute = (element, name) => Number(element.getAttribute(name) ?? 0);

function shape(element) {
  const value = (name) => attribute(element, name);
  const path = new Path2D();
  switch (element.tagName) {
    case "rect":
      path.roundRect(value("x"), value("y"), value("width"), value("height"), value("rx"));
      return path;
    case "circle":
      path.arc(value("cx"), value("cy"), value("r"), 0, 7);
      return path;
    case "line":
      path.moveTo(value("x1"), value("y1"));
      path.lineTo(value("x2"), value("y2"));
      return path;
    default:
      return new Path2D(element.getAttribute("d") ?? "");
  }
}

function paintShape(brush, path, style) {
  if (style.fill !== "none") {
    brush.fillStyle = style.fill;
    brush.fill(path);
  }
  if (style.stroke !== "none") {
    brush.strokeStyle = style.stroke;
    brush.lineWidth = parseFloat(style.strokeWidth) || 1;
    if (style.strokeDasharray !== "none") brush.setLineDash(style.strokeDasharray.split(/[, ]+/).map(parseFloat));
    brush.stroke(path);
  }
}

function paintText(brush, element, style) {
  brush.fillStyle = style.fill;
  brush.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  brush.textAlign = { middle: "center", end: "right" }[style.textAnchor] ?? "left";
  brush.textBaseline = style.dominantBaseline === "central" ? "middle" : "alphabetic";
  brush.fillText(element.textContent, attribute(element, "x"), attribute(element, "y"));
}
