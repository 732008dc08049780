"use strict";
// The page at work: one state, from which everything is computed and drawn, and which the address holds.

const app = {
  state: null, mdp: null, solution: null, traces: [], panels: [], selected: null, playing: false, busy: false, started: 0, startedAt: 0,

  change(place, operator) {
    app.state.operators[place] = operator;
    app.traces[place] = newTrace(operator);
    app.panels[place].show();
    showNames();
    compute();
  },
  changeMdp(mdp) { app.state.mdp = structuredClone(mdp); restart(); },
  remove(place) {
    if (app.state.operators.length === 1) return;
    app.state.operators.splice(place, 1);
    restart();
    document.getElementById("add").focus();
  },
  add() {
    if (app.state.operators.length === PANELS) return;
    const used = app.state.operators.map(operator => operator.name), last = app.state.operators.at(-1);
    const name = Object.keys(FAMILY).find(each => !used.includes(each)) ?? "al";
    app.state.operators.push({name, numbers: startNumbers(name, last.numbers)});
    restart();
  },
  select(state) {
    if (state === app.selected) return;
    app.selected = state;
    askToDraw();
  },
};
const part = id => document.getElementById(id);
const newTrace = operator => new Trace(makeOperator(operator, app.mdp, app.state.gamma), app.mdp, app.solution, app.state);
let setup = null, shared = {}, drawAsked = false, saving = null;

/** Everything anew from the state, after any change beyond one operator's numbers. */
function restart() {
  const {state} = app;
  fitState(state);
  app.mdp = makeMdp(state.mdp);
  app.solution = solve(app.mdp, state.gamma);
  app.traces = state.operators.map(newTrace);
  app.selected = null;
  if (app.panels.length !== state.operators.length) {
    app.panels = state.operators.map((_, place) => makePanel(place, app));
    part("panels").replaceChildren(...app.panels);
    part("panels").style.setProperty("--count", state.operators.length);
  }
  for (const panel of app.panels) panel.show();
  showNames();
  setup.show(state.mdp);
  for (const key of ["gamma", "noise", "seed", "sweeps"]) shared[key].show(state[key]);
  part("panels").dataset.kind = state.mdp.kind;
  part("add").disabled = state.operators.length === PANELS;
  part("legend").innerHTML = LEGENDS[state.mdp.kind];
  part("scrub").max = state.sweeps;
  shared.seed.hidden = state.noise === 0;
  part("speed").value = SPEEDS.reduce((a, b) => (Math.abs(b - state.speed) < Math.abs(a - state.speed) ? b : a));
  compute();
}

/** Whose curve is which. */
function showNames() {
  part("names").replaceChildren(...labelsOf(app.state.operators).map((label, place) => {
    const item = element("li", {}, label), dash = PANEL_DASHES[place].join(" ");
    item.insertAdjacentHTML("afterbegin", `<svg aria-hidden="true"><path d="M0 4H26" stroke="var(--${PANEL_COLOURS[place]})" stroke-width="3" stroke-dasharray="${dash}"/></svg>`);
    return item;
  }));
}

const BADGE = '<span class="badge">→</span> a wrong one.';
const LEGENDS = {
  chain: "Filled: Q(s, left). Hollow: Q(s, right). The bar between them is the gap. Below: the greedy action, " + BADGE,
  garnet: "Filled: the best Q of a state. Hollow: the others. The bar is the gap. Below: the greedy action, " + BADGE.replace("→", "B"),
  grid: "Blue: a high value, orange: a negative one. Arrows: the greedy action, " + BADGE,
};
const SPEEDS = [2, 5, 10, 20, 40, 80];

/** Compute what is missing, a slice at a time, so that the page answers meanwhile. */
function compute() {
  app.busy = !advanceTraces(app.traces, 40);
  if (app.busy) setTimeout(compute);
  askToDraw();
  save();
}

function askToDraw() {
  if (!drawAsked) requestAnimationFrame(draw);
  drawAsked = true;
}

function draw() {
  drawAsked = false;
  const {traces, state} = app, known = Math.min(...traces.map(trace => trace.tables.length - 1)), k = Math.min(state.k, known);
  const ranges = traces.map(trace => [trace.low[k], trace.high[k]]);
  const all = [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
  traces.forEach((trace, place) => app.panels[place].draw(trace, k, withMargin(part("same-scale").checked ? all : ranges[place]), app.selected));
  drawChart(part("loss-chart"), traces.map(trace => trace.loss), state.sweeps, k, false);
  drawChart(part("gap-chart"), traces.map(trace => trace.meanGap), state.sweeps, k, true);
  setup.draw();
  part("scrub").value = state.k;
  part("scrub").setAttribute("aria-valuetext", `sweep ${state.k} of ${state.sweeps}`);
  part("where").textContent = state.k;
  part("sweeps").textContent = state.sweeps;
}

function withMargin([low, high]) {
  const margin = high - low < 1e-9 ? 1 : 0.06 * (high - low);
  return [low - margin, high + margin];
}

function goTo(k) {
  app.state.k = Math.max(0, Math.min(app.state.sweeps, k));
  askToDraw();
  if (!app.playing) save();
}

function play(on) {
  if (on && app.state.k >= app.state.sweeps) app.state.k = 0;
  app.playing = on;
  app.startedAt = app.state.k;
  app.started = performance.now();
  part("play").setAttribute("aria-label", on ? "Pause" : "Play");
  part("play").querySelector("path").setAttribute("d", on ? "M4 3h3v10H4zM9 3h3v10H9z" : "M4 2.5v11L13 8z");
  if (on) requestAnimationFrame(frame);
  else save();
}

function frame(now) {
  if (!app.playing) return;
  const k = app.startedAt + Math.floor(Math.max(0, now - app.started) / 1000 * app.state.speed);
  if (k !== app.state.k) goTo(k);
  if (app.state.k >= app.state.sweeps) play(false);
  else requestAnimationFrame(frame);
}

/** By hand: what plays stops. */
function stepBy(sweeps) {
  if (app.playing) play(false);
  goTo(app.state.k + sweeps);
}

function setSpeed(speed) {
  app.state.speed = speed;
  part("speed").value = speed;
  if (app.playing) play(true);
  save();
}

/** The address follows the state, a moment later: browsers refuse too many changes at once. */
function save() {
  clearTimeout(saving);
  saving = setTimeout(() => {
    const hash = "#" + encodeState({...app.state, play: false});
    history.replaceState(null, "", hash);
    part("address").value = location.href;
    part("code").textContent = inPython(app.state, app.mdp);
    const current = PRESETS.findIndex(([, , preset]) => "#" + preset === hash);
    part("preset-about").textContent = PRESETS[current]?.[1] ?? "";
    part("presets").querySelectorAll("a").forEach((link, i) => {
      link.setAttribute("aria-current", String(i === current));
      if (i === current) part("presets").scrollLeft = link.offsetLeft - 16;
    });
  }, 150);
}

/** Take the state from a text: the address, or where the page starts. */
function load(hash) {
  const {state, problems} = decodeState(hash);
  app.state = state;
  part("problems").hidden = problems.length === 0;
  part("problems").textContent = `Not all of the link could be read: ${problems.join("; ")}. The rest is as it says.`;
  if (app.playing) play(false);
  restart();
  if (state.play && !matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
  state.play = false;
}

async function copyLink() {
  const address = part("address"), button = part("copy");
  address.select();
  try { await navigator.clipboard.writeText(address.value); } catch { document.execCommand("copy"); }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

const KEYS = {
  " ": () => play(!app.playing),
  ArrowLeft: event => stepBy(event.shiftKey ? -10 : -1),
  ArrowRight: event => stepBy(event.shiftKey ? 10 : 1),
  Home: () => stepBy(-Infinity),
  End: () => stepBy(Infinity),
  "[": () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf(+part("speed").value) - 1)]),
  "]": () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(+part("speed").value) + 1)]),
  a: app.add,
  c: copyLink,
  "?": () => { part("help").open = !part("help").open; },
};

function onKey(event) {
  const {target, key} = event, tag = target.tagName;
  if (event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT" || (tag === "INPUT" && target.type !== "range" && target.type !== "checkbox")) return;
  if (tag === "INPUT" && (key.startsWith("Arrow") || key === "Home" || key === "End" || (key === " " && target.type !== "range"))) return;
  if (key === " " && ["BUTTON", "SUMMARY"].includes(tag)) return;
  const action = KEYS[key] ?? KEYS[key.toLowerCase()], preset = PRESETS["123456789".indexOf(key)];
  if (action) action(event);
  else if (preset) location.hash = preset[2];
  else return;
  event.preventDefault();
}

function start() {
  for (const [key, choice] of [["gamma", {}], ["noise", {}], ["seed", {}], ["sweeps", {stops: [50, 100, 200, 300, 500, 700, 1000, 2000]}]]) {
    shared[key] = slider(key, {...choice, change: number => { app.state[key] = number; restart(); }});
    part("shared-sliders").append(shared[key]);
  }
  setup = makeSetup(app);
  part("presets").append(...PRESETS.map(([title, about, hash]) => element("li", {}, element("a", {href: "#" + hash, title: about}, title))));
  part("speed").append(...SPEEDS.map(speed => element("option", {value: speed}, `${speed} / s`)));
  part("play").addEventListener("click", () => play(!app.playing));
  part("back").addEventListener("click", () => stepBy(-1));
  part("on").addEventListener("click", () => stepBy(1));
  part("scrub").addEventListener("input", () => stepBy(+part("scrub").value - app.state.k));
  part("speed").addEventListener("change", () => setSpeed(+part("speed").value));
  part("same-scale").addEventListener("change", askToDraw);
  part("add").addEventListener("click", app.add);
  part("copy").addEventListener("click", copyLink);
  for (const chart of [part("loss-chart"), part("gap-chart")]) {
    const scrub = event => { if (event.buttons) stepBy(sweepAt(chart.clientWidth, app.state.sweeps, event.offsetX) - app.state.k); };
    chart.addEventListener("pointerdown", scrub);
    chart.addEventListener("pointermove", scrub);
  }
  startTips(part("tip"));
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => load(location.hash));
  // On a narrow screen the cards are folded away at first; on a wide one the MDP's is always open, and has no handle.
  const wide = matchMedia("(min-width: 701px)"), unfold = () => { part("setup").open = part("help").open = wide.matches; };
  wide.addEventListener("change", unfold);
  unfold();
  part("setup").addEventListener("toggle", askToDraw);
  window.addEventListener("resize", askToDraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", askToDraw);
  load(location.hash.length > 1 ? location.hash : START);
}

start();
