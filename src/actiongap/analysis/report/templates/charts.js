"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const shown = data.variants.map(() => true);
const state = {environment: 0, smoothing: +byId("smoothing").value, seeds: false};

function element(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(made);
  return made;
}
function tag(name, text, parent) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}
function swatch(variant) {
  const made = element("svg", {class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true"});
  element("line", {x1: 0, x2: 22, y1: 4, y2: 4, stroke: `var(--c${variant.hue})`, "stroke-width": 3, "stroke-dasharray": variant.dash || "none"}, made);
  return made;
}
const steps = v => v >= 1e6 ? +(v / 1e6).toFixed(3) + "M" : v >= 1e3 ? +(v / 1e3).toFixed(2) + "k" : String(+v.toFixed(2));
const number = v => Math.abs(v) >= 1e5 ? v.toExponential(1) : Math.abs(v) >= 100 ? v.toFixed(0) : Math.abs(v) >= 10 ? v.toFixed(1) : Math.abs(v) >= .1 || v === 0 ? v.toFixed(2) : v.toPrecision(2);

// A curve is packed as [lowest, unit, base64 of two-byte whole numbers]; 65535 stands for nothing.
const unpacked = new Map();
function unpack(packed) {
  if (!packed) return null;
  if (!unpacked.has(packed)) {
    const bytes = Uint8Array.from(atob(packed[2]), c => c.charCodeAt(0)), codes = new DataView(bytes.buffer);
    unpacked.set(packed, Float64Array.from({length: bytes.length / 2}, (_, i) => {
      const code = codes.getUint16(2 * i, true);
      return code === 65535 ? NaN : packed[0] + packed[1] * code;
    }));
  }
  return unpacked.get(packed);
}
// The evaluation at step 0, if it is there, stands alone: it counts in no score.
function trailing(values, window, first) {
  if (window <= 1) return values;
  return values.map((own, i) => {
    if (Number.isNaN(own)) return NaN;
    let sum = 0, count = 0;
    for (let j = Math.max(i < first ? 0 : first, i - window + 1); j <= i; j++) if (!Number.isNaN(values[j])) { sum += values[j]; count++; }
    return sum / count;
  });
}
// For each variant: where, mean over runs, band, and each run. Smoothed first, so the band is that of what is drawn.
function curvesOf(metric) {
  return data.environments[state.environment].series.filter(s => s.curves[metric]).map(series => {
    const x = data.steps[series.steps], first = x[0] === 0 ? 1 : 0;
    const window = Math.max(1, Math.round(state.smoothing / series.size));
    const runs = series.curves[metric].map(unpack).map(run => run && trailing(run, window, first));
    const mean = [], low = [], high = [], error = [], count = [];
    for (let i = 0; i < x.length; i++) {
      const here = runs.filter(run => run && !Number.isNaN(run[i])).map(run => run[i]), n = here.length;
      const m = n ? here.reduce((a, b) => a + b, 0) / n : NaN;
      const e = n > 1 ? Math.sqrt(here.reduce((a, b) => a + (b - m) ** 2, 0) / (n - 1) / n) : NaN;
      mean.push(m); error.push(e); count.push(n); low.push(m - e); high.push(m + e);
    }
    return {variant: series.variant, x, mean, low, high, error, count, runs: runs.filter(Boolean), total: runs.length};
  }).filter(curve => curve.mean.some(v => !Number.isNaN(v)));
}
function profileCurves() {
  return Object.entries(data.profile.shares).map(([variant, [mean, low, high]]) =>
    ({variant: +variant, x: data.profile.thresholds, mean, low, high, runs: []}));
}
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw * .999), result = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) result.push(+(k * step).toPrecision(12));
  return result;
}
function path(xs, ys, x, y) {
  let d = "", pen = false;
  for (let i = 0; i < xs.length; i++) {
    if (Number.isNaN(ys[i])) { pen = false; continue; }
    d += (pen ? "L" : "M") + x(xs[i]).toFixed(1) + " " + y(ys[i]).toFixed(1);
    pen = true;
  }
  return d;
}
function band(curve, x, y) {
  let d = "";
  for (let i = 0; i < curve.x.length; i++) {
    if (Number.isNaN(curve.low[i])) continue;
    let j = i;
    while (j + 1 < curve.x.length && !Number.isNaN(curve.low[j + 1])) j++;
    for (let k = i; k <= j; k++) d += (k === i ? "M" : "L") + x(curve.x[k]).toFixed(1) + " " + y(curve.high[k]).toFixed(1);
    for (let k = j; k >= i; k--) d += "L" + x(curve.x[k]).toFixed(1) + " " + y(curve.low[k]).toFixed(1);
    d += "Z"; i = j;
  }
  return d;
}
function nearest(xs, value) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < value) low = middle; else high = middle; }
  return value - xs[low] < xs[high] - value ? low : high;
}

class Chart {
  constructor(place) {
    this.place = place;
    this.isProfile = "profile" in place.dataset;
    this.metric = place.dataset.metric;
    const head = tag("div", null, place);
    head.className = "chart-head";
    this.title = tag("h3", "", head);
    if (place.dataset.choose) {
      const chooser = tag("select", null, head);
      chooser.setAttribute("aria-label", "what this chart shows");
      for (const name of place.dataset.choose.split(" ")) tag("option", data.metrics[name].label, chooser).value = name;
      chooser.onchange = () => { this.metric = chooser.value; this.compute(); this.draw(); };
      this.title.hidden = true;
    }
    this.svg = element("svg", {class: "plot", role: "img", tabindex: 0}, place);
    this.tip = tag("div", null, place);
    this.tip.className = "tip"; this.tip.hidden = true; this.tip.setAttribute("role", "status");
    this.svg.addEventListener("pointermove", event => {
      const box = this.svg.getBoundingClientRect();
      this.point(this.unscale((event.clientX - box.left) * this.width / box.width), true);
    });
    this.svg.addEventListener("pointerleave", () => clear());
    this.svg.addEventListener("blur", () => clear());
    this.svg.addEventListener("keydown", event => {
      const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") clear();
      if (!way || !this.longest) return;
      event.preventDefault();
      const last = this.longest.length - 1, now = this.at === undefined ? (way > 0 ? -1 : last + 1) : nearest(this.longest, this.at);
      this.point(this.longest[Math.min(last, Math.max(0, now + way * (event.shiftKey ? 10 : 1)))], true);
    });
    new ResizeObserver(() => { if (this.curves && place.clientWidth !== this.measured) this.draw(); }).observe(place);
  }
  compute() { this.curves = this.isProfile ? profileCurves() : curvesOf(this.metric); }
  draw() {
    const svg = this.svg, curves = this.curves.filter(curve => shown[curve.variant]);
    const label = this.isProfile ? "Share of runs with a " + data.profile.unit + " above" : data.metrics[this.metric].label;
    this.title.textContent = label;
    svg.setAttribute("aria-label", label + (this.isProfile ? "" : " by training step, " + data.environments[state.environment].label)
      + ": " + (curves.map(c => data.variants[c.variant].label).join(", ") || "nothing shown") + ". The arrow keys read values.");
    this.measured = this.place.clientWidth;
    const width = this.width = Math.max(240, this.measured - 32), height = +this.place.dataset.height * (width < 480 ? .8 : 1);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    this.tip.hidden = true; this.cross = null;
    if (!this.curves.length) { element("text", {x: width / 2, y: height / 2, "text-anchor": "middle"}, svg).textContent = "no data"; this.longest = null; return; }
    let low = Infinity, high = -Infinity, left = Infinity, right = -Infinity;
    const widen = v => { if (!Number.isNaN(v)) { low = Math.min(low, v); high = Math.max(high, v); } };
    for (const curve of this.curves) { left = Math.min(left, curve.x[0]); right = Math.max(right, curve.x[curve.x.length - 1]); }
    for (const curve of curves.length ? curves : this.curves) {
      for (const values of [curve.mean, curve.low, curve.high, ...(state.seeds ? curve.runs : [])]) values.forEach(widen);
    }
    const share = this.isProfile || data.metrics[this.metric].share;
    if (share) { low = 0; high = 1; }
    if (right <= left) right = left + 1;
    if (high - low < 1e-9) { low -= .5; high += .5; }
    const margin = share ? .02 * (high - low) : .05 * (high - low);
    low -= margin; high += margin;
    const yTicks = ticks(low, high, height > 250 ? 6 : 4), pad = 12 + 6.4 * Math.max(...yTicks.map(v => String(v).length), 2);
    const x = v => pad + (width - pad - 14) * (v - left) / (right - left), y = v => height - 38 - (height - 46) * (v - low) / (high - low);
    this.x = x; this.y = y; this.pad = pad; this.height = height; this.range = [left, right];
    this.unscale = p => left + (right - left) * Math.min(1, Math.max(0, (p - pad) / (width - pad - 14)));
    for (const v of yTicks) {
      element("line", {class: "grid", x1: pad, x2: width - 14, y1: y(v), y2: y(v)}, svg);
      element("text", {x: pad - 8, y: y(v) + 4, "text-anchor": "end"}, svg).textContent = v;
    }
    element("text", {class: "axis", x: (pad + width - 14) / 2, y: height - 4, "text-anchor": "middle"}, svg).textContent = this.isProfile ? data.profile.unit : "step";
    for (const v of ticks(left, right, width < 480 ? 3 : 5)) element("text", {x: x(v), y: height - 20, "text-anchor": "middle"}, svg).textContent = this.isProfile ? v : steps(v);
    for (const curve of curves) element("path", {class: "band", d: band(curve, x, y), fill: `var(--c${data.variants[curve.variant].hue})`, opacity: .14}, svg);
    if (state.seeds) for (const curve of curves) for (const run of curve.runs)
      element("path", {class: "seed", d: path(curve.x, run, x, y), fill: "none", stroke: `var(--c${data.variants[curve.variant].hue})`, "stroke-width": .8, opacity: .5}, svg);
    for (const curve of curves) {
      const variant = data.variants[curve.variant];
      element("path", {class: "mean", "data-variant": curve.variant, d: path(curve.x, curve.mean, x, y), fill: "none", stroke: `var(--c${variant.hue})`,
        "stroke-width": this.height > 250 ? 2 : 1.6, "stroke-linejoin": "round", "stroke-dasharray": variant.dash || "none"}, svg);
    }
    this.longest = this.curves.reduce((a, b) => a.x.length >= b.x.length ? a : b).x;
    this.marks = element("g", {}, svg);
  }
  // Show what is at this step: a cross line in every chart, the numbers in this one.
  point(at, own) {
    if (!this.longest) return;
    if (own) for (const chart of charts) if (chart !== this && !chart.isProfile && !this.isProfile) chart.point(at, false);
    this.at = at;
    const curves = this.curves.filter(curve => shown[curve.variant]), x = this.x(at);
    this.marks.replaceChildren();
    element("line", {class: "cross", x1: x, x2: x, y1: 8, y2: this.height - 38}, this.marks);
    const rows = [];
    for (const curve of curves) {
      const slack = (this.range[1] - this.range[0]) / 50;
      if (at > curve.x[curve.x.length - 1] + slack || at < curve.x[0] - slack) continue;
      const i = nearest(curve.x, at);
      if (Number.isNaN(curve.mean[i])) continue;
      element("circle", {cx: this.x(curve.x[i]), cy: this.y(curve.mean[i]), r: 3.5, fill: `var(--c${data.variants[curve.variant].hue})`}, this.marks);
      rows.push({curve, i});
    }
    this.tip.hidden = !own;
    if (!own) return;
    rows.sort((a, b) => b.curve.mean[b.i] - a.curve.mean[a.i]);
    this.tip.replaceChildren();
    tag("b", this.isProfile ? data.profile.unit + " above " + number(at) : "step " + (rows.length ? rows[0].curve.x[rows[0].i] : Math.round(at)).toLocaleString("en"), this.tip);
    for (const {curve, i} of rows) {
      const row = tag("div", null, this.tip);
      row.append(swatch(data.variants[curve.variant]));
      tag("span", data.variants[curve.variant].label, row);
      const value = tag("span", number(curve.mean[i]), row);
      if (this.isProfile) tag("small", ` [${number(curve.low[i])}, ${number(curve.high[i])}]`, value);
      else tag("small", (Number.isNaN(curve.error[i]) ? "" : " ± " + number(curve.error[i])) + (curve.count[i] < curve.total ? ` (${curve.count[i]} of ${curve.total})` : ""), value);
    }
    const box = this.place.clientWidth, wide = this.tip.offsetWidth;
    const spot = 16 + x + (x > this.width / 2 ? -wide - 14 : 14);
    this.tip.style.left = Math.max(4, Math.min(box - wide - 4, spot)) + "px";
    this.tip.style.top = "2.6rem";
  }
  unpoint() { this.at = undefined; this.tip.hidden = true; if (this.marks) this.marks.replaceChildren(); }
}
const charts = [...document.querySelectorAll(".chart")].filter(place => !("profile" in place.dataset) || data.profile).map(place => {
  if ("profile" in place.dataset) place.hidden = false;
  return new Chart(place);
});
function clear() { for (const chart of charts) chart.unpoint(); }
function draw(compute) {
  byId("smoothed").textContent = state.smoothing;
  const here = new Set(data.environments[state.environment].series.map(s => s.variant));
  buttons.forEach((button, i) => { button.setAttribute("aria-pressed", shown[i]); button.hidden = !here.has(i); });
  for (const chart of charts) { if (compute && !(chart.isProfile && chart.curves)) chart.compute(); chart.draw(); }
}
const buttons = data.variants.map((variant, i) => {
  const button = tag("button", null, byId("legend"));
  button.type = "button";
  button.append(swatch(variant), variant.label);
  button.onclick = event => {
    if (event.shiftKey) { const alone = shown.every((v, j) => v === (j === i)); shown.forEach((_, j) => { shown[j] = alone || j === i; }); }
    else shown[i] = !shown[i];
    draw(false);
  };
  return button;
});

byId("environment-label").hidden = data.environments.length < 2;
byId("environment").onchange = event => { state.environment = +event.target.value; draw(true); };
let waiting = 0;
byId("smoothing").oninput = event => {
  state.smoothing = +event.target.value;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => draw(true));
};
byId("seeds").onchange = event => { state.seeds = event.target.checked; draw(false); };
draw(true);
