"use strict";
// A table Q_k as a picture: by state for a chain or a Garnet, as a map for a gridworld. Where the greedy action is wrong,
// it stands in a filled badge: that does not depend on telling colours apart.

const PLOT = {left: 44, right: 10, top: 10, policy: 34, height: 232};

/** Where state s stands in a plot of that width. */
function plotX(mdp, width, s) {
  const inside = width - PLOT.left - PLOT.right - 16;
  return PLOT.left + 8 + (mdp.states === 1 ? inside / 2 : inside * s / (mdp.states - 1));
}

/** The state at a point of the picture, or null. */
function stateAt(mdp, width, x, y) {
  if (mdp.kind === "grid") {
    const size = width / mdp.width, column = Math.floor(x / size), row = Math.floor(y / size);
    const inside = column >= 0 && column < mdp.width && row >= 0 && row < mdp.height;
    return inside ? mdp.stateOf[row * mdp.width + column] : null;
  }
  const inside = width - PLOT.left - PLOT.right - 16, s = Math.round((x - PLOT.left - 8) / inside * (mdp.states - 1));
  return s >= 0 && s < mdp.states ? s : null;
}

function drawTable(canvas, trace, k, colour, range, selected) {
  if (trace.mdp.kind === "grid") drawMap(canvas, trace, k, selected);
  else drawPlot(canvas, trace, k, colour, range, selected);
}

function drawPlot(canvas, {mdp, tables, solution}, k, colour, [low, high], selected) {
  const {pen, width, height} = clearCanvas(canvas, PLOT.height), {states, actions} = mdp, q = tables[k], ink = palette();
  const bottom = height - PLOT.policy, y = number => bottom - (bottom - PLOT.top) * (number - low) / (high - low);
  const x = s => plotX(mdp, width, s), spacing = states > 1 ? x(1) - x(0) : width;
  for (const tick of ticks(low, high, 5)) {
    line(pen, ink.grid, 1, [[PLOT.left, y(tick)], [width - PLOT.right, y(tick)]]);
    text(pen, String(tick).replace("-", "−"), PLOT.left - 6, y(tick), ink.faint, "right");
  }
  if (selected !== null) line(pen, ink.line, Math.min(22, Math.max(3, spacing - 4)), [[x(selected), PLOT.top], [x(selected), height - 4]]);
  const policy = greedyPolicy(q, mdp);
  for (let s = 0; s < states; s++) {
    const best = q[s * actions + policy[s]], second = best - actionGap(q, s * actions, actions, policy[s]);
    pen.globalAlpha = 0.3;
    line(pen, colour, Math.min(5, spacing / 2), [[x(s), y(best)], [x(s), y(second)]]);
    pen.globalAlpha = 1;
  }
  if (mdp.kind === "chain") {
    const points = a => Array.from({length: states}, (_, s) => [x(s), y(q[s * 2 + a])]);
    line(pen, ink.faint, 1.5, points(1));
    line(pen, colour, 2.25, points(0));
    if (spacing > 7) {
      for (const [px, py] of points(1)) dot(pen, px, py, 3.2, ink.card, ink.faint);
      for (const [px, py] of points(0)) dot(pen, px, py, 3.6, colour);
    }
  } else {
    for (let s = 0; s < states; s++) {
      for (let a = 0; a < actions; a++) if (a !== policy[s]) dot(pen, x(s), y(q[s * actions + a]), 2.6, ink.card, ink.faint);
      dot(pen, x(s), y(q[s * actions + policy[s]]), 3.6, colour);
    }
  }
  for (let s = 0; s < states; s++) drawAction(pen, mdp, x(s), height - PLOT.policy / 2 + 2, policy[s], isWrong(solution, mdp, s, policy[s]), spacing);
}

const isWrong = (solution, mdp, s, a) => solution.optimal[s * mdp.actions + a] === 0;

/** The greedy action as a sign, in a badge where it is wrong. Where there is no room, a small mark. */
function drawAction(pen, mdp, x, y, action, wrong, room) {
  const ink = palette(), size = Math.min(20, room - 2);
  if (size < 9) {
    pen.fillStyle = wrong ? ink.bad : ink.line;
    pen.fillRect(x - Math.max(1, size / 2), wrong ? y - 8 : y - 2, Math.max(2, size), wrong ? 16 : 4);
    return;
  }
  if (wrong) {
    pen.fillStyle = ink.bad;
    pen.beginPath();
    pen.roundRect(x - size / 2, y - 10, size, 20, 4);
    pen.fill();
  }
  if (mdp.kind === "garnet") text(pen, mdp.arrows[action], x, y + 1, wrong ? ink["on-bad"] : ink.text, "center", `600 ${Math.min(13, size)}px system-ui, sans-serif`);
  else drawArrow(pen, x, y, size * 0.62, mdp.kind === "chain" ? [3, 1][action] : action, wrong ? ink["on-bad"] : ink.text);
}

/** An arrow of that length: direction 0 up, 1 right, 2 down, 3 left. */
function drawArrow(pen, x, y, length, direction, colour) {
  const [dx, dy] = MOVES[direction], half = length / 2, wing = length * 0.32;
  const tip = [x + dx * half, y + dy * half];
  line(pen, colour, Math.max(1.2, length / 8), [[x - dx * half, y - dy * half], tip]);
  line(pen, colour, Math.max(1.2, length / 8), [
    [tip[0] - wing * (dx + dy), tip[1] - wing * (dy + dx)], tip, [tip[0] - wing * (dx - dy), tip[1] - wing * (dy - dx)],
  ]);
}

function drawMap(canvas, {mdp, tables, solution}, k, selected) {
  const size = canvas.clientWidth / mdp.width, {pen} = clearCanvas(canvas, size * mdp.height), ink = palette(), q = tables[k];
  const scale = Math.max(1e-9, largest(solution.values));
  drawCells(pen, mdp, size);
  for (let s = 0; s < mdp.states; s++) {
    const start = s * 4, action = greedyAction(q, start, 4), cell = mdp.cellOf[s], worth = q[start + action];
    const left = cell % mdp.width * size, top = Math.floor(cell / mdp.width) * size, x = left + size / 2, y = top + size / 2;
    pen.globalAlpha = Math.min(0.62, 0.62 * Math.abs(worth) / scale);
    pen.fillStyle = worth < 0 ? ink.warm : ink.cool;
    pen.fillRect(left, top, size, size);
    pen.globalAlpha = 1;
    const undecided = actionGap(q, start, 4, action) === 0 && q[start] === q[start + 1] && q[start] === q[start + 2] && q[start] === q[start + 3];
    if (undecided) { dot(pen, x, y, Math.max(1, size / 16), ink.faint); continue; }
    const wrong = isWrong(solution, mdp, s, action), badge = size * 0.72;
    if (wrong) {
      pen.fillStyle = ink.bad;
      pen.beginPath();
      pen.roundRect(x - badge / 2, y - badge / 2, badge, badge, size / 8);
      pen.fill();
    }
    drawArrow(pen, x, y, size * 0.46, action, wrong ? ink["on-bad"] : ink.text);
  }
  drawGridLines(pen, mdp, size);
  if (selected !== null) frameCell(pen, mdp, size, mdp.cellOf[selected], ink.text);
}

/** Walls, goals and pits. */
function drawCells(pen, {width, height, cells}, size) {
  const ink = palette(), signs = {g: "+10", s: "+1", p: "−10"};
  for (let cell = 0; cell < width * height; cell++) {
    const left = cell % width * size, top = Math.floor(cell / width) * size, kind = cells[cell];
    pen.fillStyle = kind === "w" ? ink.wall : ink.card;
    pen.fillRect(left, top, size + 0.5, size + 0.5);
    if (!(kind in signs)) continue;
    const inset = size * 0.08;
    pen.fillStyle = kind === "p" ? ink.warm : ink.cool;
    pen.globalAlpha = kind === "s" ? 0.3 : 0.9;
    pen.beginPath();
    pen.roundRect(left + inset, top + inset, size - 2 * inset, size - 2 * inset, size / 2);
    pen.fill();
    pen.globalAlpha = 1;
    const letters = Math.max(7, Math.min(14, size * 0.36));
    if (size > 15) text(pen, signs[kind], left + size / 2, top + size / 2 + 0.5, kind === "s" ? ink.text : "#000", "center", `700 ${letters}px system-ui, sans-serif`);
  }
}

function drawGridLines(pen, {width, height}, size) {
  const colour = palette().line;
  for (let x = 0; x <= width; x++) line(pen, colour, 1, [[x * size, 0], [x * size, height * size]]);
  for (let y = 0; y <= height; y++) line(pen, colour, 1, [[0, y * size], [width * size, y * size]]);
}

function frameCell(pen, {width}, size, cell, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.strokeRect(cell % width * size + 1, Math.floor(cell / width) * size + 1, size - 2, size - 2);
}
