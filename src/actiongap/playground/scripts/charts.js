"use strict";
// The curves of all panels over all sweeps, with a cursor at the sweep that is shown.

const CHART = {left: 50, right: 14, top: 8, bottom: 24, height: 190};

/** The sweep at a place of a chart, and back. */
const chartX = (width, sweeps, k) => CHART.left + (width - CHART.left - CHART.right) * k / sweeps;
const sweepAt = (width, sweeps, x) => Math.max(0, Math.min(sweeps, Math.round((x - CHART.left) / (width - CHART.left - CHART.right) * sweeps)));

/** `series` is a list of numbers a panel, as far as they are computed. */
function drawChart(canvas, series, sweeps, k, logarithmic) {
  const {pen, width, height} = clearCanvas(canvas, CHART.height), ink = palette();
  const [low, high, marks] = (logarithmic ? decades : fromZero)(series);
  const place = number => (logarithmic ? Math.log10(Math.max(number, 10 ** low)) : number);
  const bottom = height - CHART.bottom, y = number => bottom - (bottom - CHART.top) * (place(number) - low) / (high - low);
  for (const mark of marks) {
    line(pen, ink.grid, 1, [[CHART.left, y(mark)], [width - CHART.right, y(mark)]]);
    text(pen, String(+mark.toPrecision(6)).replace("-", "−"), CHART.left - 6, y(mark), ink.faint, "right");
  }
  for (const mark of ticks(0, sweeps, Math.min(5, sweeps))) text(pen, String(mark), chartX(width, sweeps, mark), height - 10, ink.faint);
  line(pen, ink.faint, 1, [[chartX(width, sweeps, k), CHART.top], [chartX(width, sweeps, k), bottom]]);
  series.forEach((numbers, panel) => {
    const points = Array.from(numbers, (number, at) => [chartX(width, sweeps, at), y(number)]);
    const first = logarithmic ? numbers.findIndex(number => number > 0) : 0;
    if (first >= 0) line(pen, panelColour(panel), 2, points.slice(first), PANEL_DASHES[panel]);
  });
  series.forEach((numbers, panel) => {
    const at = Math.min(k, numbers.length - 1);
    if (!logarithmic || numbers[at] > 0) dot(pen, chartX(width, sweeps, at), y(numbers[at]), 4.5, panelColour(panel), ink.card);
  });
}

function fromZero(series) {
  const top = Math.max(1e-9, ...series.map(largest)) * 1.05;
  return [0, top, ticks(0, top, 5)];
}

function decades(series) {
  let low = Infinity, high = -Infinity;
  for (const numbers of series) for (const number of numbers) if (number > 1e-6) { low = Math.min(low, number); high = Math.max(high, number); }
  if (high <= 0) return [-1, 1, [0.1, 1, 10]];
  const from = Math.max(Math.floor(Math.log10(low)), Math.floor(Math.log10(high)) - 4), to = Math.max(from + 1, Math.log10(high * 1.2));
  return [from, to, Array.from({length: Math.floor(to) - from + 1}, (_, i) => 10 ** (from + i))];
}
