"use strict";
// Drawing on a canvas: sharp on any screen, in the page's own colours, which follow light and dark.

let colours = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = null; });

/** The page's colours by name, such as text, faint, line, c0. */
function palette() {
  if (colours === null) {
    const style = getComputedStyle(document.documentElement), names = ["text", "faint", "line", "card", "grid", "wall", "warm", "cool", "bad"];
    colours = Object.fromEntries([...names, "on-bad", "accent", ...PANEL_COLOURS].map(name => [name, style.getPropertyValue("--" + name).trim()]));
  }
  return colours;
}

/** The panels' colours: those of the figures that everyone tells apart, and light and dark pages both carry. */
const PANEL_COLOURS = ["c0", "c1", "c2", "c5"];
const panelColour = place => palette()[PANEL_COLOURS[place]];
const PANEL_DASHES = [[], [9, 3], [], [2, 3]];

/** A cleared canvas as wide as its place and as high as said: {pen, width, height}, in CSS pixels. */
function clearCanvas(canvas, height) {
  const width = canvas.clientWidth, scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.lineJoin = "round";
  return {pen, width, height};
}

function line(pen, colour, width, points, dash = []) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
  pen.setLineDash([]);
}

function dot(pen, x, y, radius, fill, stroke = null) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  if (stroke) { pen.strokeStyle = stroke; pen.lineWidth = 1.5; pen.stroke(); }
}

function text(pen, words, x, y, colour, align = "center", font = null) {
  if (font) pen.font = font;
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.textBaseline = "middle";
  pen.fillText(words, x, y);
  if (font) pen.font = "12px system-ui, sans-serif";
}

/** Round numbers from low to high, about as many as wanted. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(size => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

/** A number for people: three figures or so, a true minus. */
function shown(number) {
  const size = Math.abs(number);
  if (size >= 1e5 || (size > 0 && size < 0.001)) return number.toExponential(1).replace("e+", "e").replace("-", "−");
  return number.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size === 0 || size >= 0.1 ? 2 : 3).replace("-", "−");
}
