"use strict";
// The card where an MDP is chosen, and a gridworld is drawn: by mouse, by touch and by keys.

const KINDS = {chain: "Chain walk", grid: "Gridworld", garnet: "Garnet"};
const BRUSHES = {w: "wall", g: "goal +10", s: "goal +1", p: "pit −10", ".": "open"};
const MDP_ABOUT = {
  chain: "Left is optimal everywhere: its end pays 3. But the way there costs 1 a step, and the right side pays 1.",
  grid: "Draw on it. Goals and pits pay once, on arrival, and end the episode; a step pays nothing. A move may slip.",
  garnet: "A random MDP. It is the one of mdps.garnet(states, actions, successors, seed) in Python, number by number.",
};
const FIRST_MDPS = {
  chain: DEFAULTS.mdp,
  grid: {kind: "grid", width: 10, height: 7, slip: 0.1, cells: [
    ".........g", ".www.www..", ".w.....w..", ".w.s.p.w..", ".w.....w..", ".www.www..", "..........",
  ].join("")},
  garnet: {kind: "garnet", states: 20, actions: 3, successors: 2, seed: 0},
};
const MDP_SLIDERS = {
  chain: [["states", STOPS.states], ["success", STOPS.success]],
  grid: [["width", STOPS.side], ["height", STOPS.side], ["slip", STOPS.slip]],
  garnet: [["states", STOPS.garnetStates], ["actions", STOPS.actions], ["successors", STOPS.successors], ["seed", STOPS.seed]],
};

/** `app` is told by changeMdp(mdp). Returns show(mdp) and draw(). */
function makeSetup(app) {
  const part = id => document.getElementById(id);
  const kinds = part("kinds"), brushes = part("brushes"), drawing = part("drawing"), sliders = part("mdp-sliders");
  const remembered = structuredClone(FIRST_MDPS);
  let brush = "w", painting = null, last = null, cursor = 0, kind = null;

  fillSegments(kinds, "kind", KINDS, choice => app.changeMdp(remembered[choice]));
  fillSegments(brushes, "brush", BRUSHES, choice => { brush = choice; });
  chooseSegment(brushes, brush);

  function change(key, number) {
    const mdp = {...app.state.mdp, [key]: number};
    if (mdp.kind === "grid" && key !== "slip") mdp.cells = resized(app.state.mdp, mdp.width, mdp.height);
    app.changeMdp(mdp);
  }

  function paint(cell, kind) {
    const {mdp} = app.state, cells = mdp.cells.slice(0, cell) + kind + mdp.cells.slice(cell + 1);
    if (cells !== mdp.cells && cells.includes(".")) app.changeMdp({...mdp, cells});
  }
  const cellAt = event => {
    const {width, height} = app.state.mdp, size = drawing.clientWidth / width;
    const column = Math.floor(event.offsetX / size), row = Math.floor(event.offsetY / size);
    return column >= 0 && column < width && row >= 0 && row < height ? row * width + column : null;
  };
  drawing.addEventListener("pointerdown", event => {
    const cell = app.state.mdp.kind === "grid" ? cellAt(event) : null;
    if (cell === null) return;
    drawing.setPointerCapture(event.pointerId);
    // A stroke that begins on what the brush draws takes it away.
    painting = app.state.mdp.cells[cell] === brush ? "." : brush;
    last = cursor = cell;
    paint(cell, painting);
  });
  drawing.addEventListener("pointermove", event => {
    const cell = painting === null ? null : cellAt(event);
    if (cell === null || cell === last) return;
    for (const each of cellsBetween(last, cell, app.state.mdp.width)) paint(each, painting);
    last = cell;
  });
  for (const kind of ["pointerup", "pointercancel"]) drawing.addEventListener(kind, () => { painting = null; });
  drawing.addEventListener("keydown", event => {
    if (app.state.mdp.kind !== "grid") return;
    const {width, height, cells} = app.state.mdp, direction = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
    const number = "12345".indexOf(event.key);
    if (direction >= 0) {
      const [dx, dy] = MOVES[direction], x = cursor % width + dx, y = Math.floor(cursor / width) + dy;
      if (x >= 0 && x < width && y >= 0 && y < height) cursor = y * width + x;
    } else if (event.key === " " || event.key === "Enter") paint(cursor, cells[cursor] === brush ? "." : brush);
    else if (number >= 0) chooseSegment(brushes, brush = Object.keys(BRUSHES)[number]);
    else return;
    event.preventDefault();
    event.stopPropagation();
    draw();
  });
  for (const kind of ["focus", "blur"]) drawing.addEventListener(kind, () => draw());

  function show(mdp) {
    remembered[mdp.kind] = mdp;
    chooseSegment(kinds, mdp.kind);
    part("mdp-name").textContent = KINDS[mdp.kind];
    part("mdp-about").textContent = MDP_ABOUT[mdp.kind];
    brushes.hidden = mdp.kind !== "grid";
    part("mdp-picture").hidden = mdp.kind === "garnet";
    drawing.classList.toggle("editable", mdp.kind === "grid");
    drawing.tabIndex = mdp.kind === "grid" ? 0 : -1;
    if (mdp.kind === "grid") cursor = Math.min(cursor, mdp.cells.length - 1);
    if (kind !== mdp.kind) {
      kind = mdp.kind;
      const rows = MDP_SLIDERS[kind].map(([key, stops]) => slider(key, {stops, change: number => change(key, number)}));
      const buttons = kind !== "grid" ? [] : [element("div", {class: "stacked"},
        element("button", {type: "button", click: () => app.changeMdp(FIRST_MDPS.grid)}, "Rooms"),
        element("button", {type: "button", click: () => app.changeMdp(emptied(app.state.mdp))}, "Clear"))];
      sliders.replaceChildren(...rows, ...buttons);
    }
    MDP_SLIDERS[kind].forEach(([key], i) => sliders.children[i].show(mdp[key]));
  }

  function draw() {
    const {mdp} = app.state;
    drawing.style.maxWidth = mdp.kind === "grid" ? Math.min(560, mdp.width * Math.min(44, 380 / mdp.height)) + "px" : "none";
    if (mdp.kind === "chain") drawChain(drawing, mdp);
    if (mdp.kind === "grid") drawEditor(drawing, mdp, document.activeElement === drawing ? cursor : null);
  }
  return {show, draw};
}

/** The same cells on a grid of another size; what is new is open. */
function resized({width, cells}, newWidth, newHeight) {
  let result = "";
  for (let y = 0; y < newHeight; y++) for (let x = 0; x < newWidth; x++) result += (x < width ? cells[y * width + x] : undefined) ?? ".";
  return result.includes(".") ? result : "." + result.slice(1);
}

/** Open cells and one goal, in the corner. */
const emptied = mdp => ({...mdp, cells: ".".repeat(mdp.width * mdp.height - 1) + "g"});

/** The cells on the way from one to another, so that a fast stroke has no holes. The first is left out. */
function cellsBetween(from, to, width) {
  const [x0, y0, x1, y1] = [from % width, Math.floor(from / width), to % width, Math.floor(to / width)];
  const steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0));
  return Array.from({length: steps}, (_, i) => {
    const part = (i + 1) / steps;
    return Math.round(y0 + (y1 - y0) * part) * width + Math.round(x0 + (x1 - x0) * part);
  });
}

function drawEditor(canvas, mdp, cursor) {
  const size = canvas.clientWidth / mdp.width, {pen} = clearCanvas(canvas, size * mdp.height);
  drawCells(pen, mdp, size);
  drawGridLines(pen, mdp, size);
  if (cursor !== null) frameCell(pen, mdp, size, cursor, palette().accent);
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "The gridworld, to draw on: arrow keys move, space draws, 1 to 5 choose what"
    + (cursor === null ? "" : `. Column ${cursor % mdp.width + 1}, row ${Math.floor(cursor / mdp.width) + 1}: ${BRUSHES[mdp.cells[cursor]]}`));
}

/** The chain with what each state pays. */
function drawChain(canvas, {states}) {
  const {pen, width, height} = clearCanvas(canvas, 74), ink = palette(), spacing = width / states, radius = Math.min(17, spacing * 0.4);
  const x = s => (s + 0.5) * spacing, middle = (states - 1) / 2, y = height / 2 - 8;
  line(pen, ink.line, 2, [[x(0), y], [x(states - 1), y]]);
  for (let s = 0; s < states; s++) {
    const reward = s === 0 ? 3 : Math.sign(s - middle);
    dot(pen, x(s), y, radius, ink.card);
    pen.globalAlpha = reward === 0 ? 0 : 0.28 + 0.14 * Math.abs(reward);
    dot(pen, x(s), y, radius, reward < 0 ? ink.warm : ink.cool);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.line;
    pen.lineWidth = 1;
    pen.stroke();
    if (radius > 8) text(pen, reward > 0 ? "+" + reward : String(reward).replace("-", "−"), x(s), y + 0.5, ink.text, "center", "600 12px system-ui, sans-serif");
    if (s % Math.ceil(states / 21) === 0) text(pen, s, x(s), height - 9, ink.faint);
  }
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `A chain of ${states} states: 3 at the left end, −1 on the left side, 0 in the middle, 1 on the right side`);
}
