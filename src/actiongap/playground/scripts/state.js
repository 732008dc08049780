"use strict";
// The state of the page, and how it is written after the "#" of its address:
//
//   mdp=chain:11:0.7&gamma=0.99&k=130&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9
//
//   mdp       chain:STATES:SUCCESS, garnet:STATES:ACTIONS:SUCCESSORS:SEED or grid:WIDTHxHEIGHT:SLIP:CELLS
//   CELLS     "." open, "w" wall, "g" goal, "s" small goal, "p" pit, row by row; 12. stands for twelve of them
//   op        an operator and its numbers, one op for each panel; no lower_bound is the paper's, R_min / (1 - gamma)
//   gamma, noise, seed (of the noise), sweeps, k (the sweep shown), speed (sweeps a second), play=1 (it plays at once)
//
// What is not given is as in DEFAULTS. What cannot be read is left out, and told.

const LIMITS = {
  entries: 2e6,
  states: [3, 1001], success: [0, 1], garnetStates: [2, 60], actions: [2, 4], successors: [1, 8], side: [1, 20], slip: [0, 1],
  gamma: [0, 0.9999], noise: [0, 100], seed: [0, 2 ** 32 - 1], sweeps: [1, 20000], speed: [1, 240],
  alpha: [0, 0.9999], clip_ratio: [0.0001, 0.9999], lower_bound: [-1e6, 1e6], temperature: [0.0001, 1000],
  floor: [-1e6, 0], cap: [1e-6, Infinity], limit: [0, 1],
};
const DEFAULTS = {
  mdp: {kind: "chain", states: 11, success: 0.7}, gamma: 0.99, noise: 0, seed: 0, sweeps: 500, k: 0, speed: 20, play: false,
  operators: [{name: "dqn", numbers: {}}, {name: "al", numbers: {alpha: 0.99}},
              {name: "clip_al", numbers: {alpha: 0.99, clip_ratio: 0.9, lower_bound: null}}],
};

/** A number as people write it, without the noise of its last bits. */
const brief = number => String(+number.toPrecision(10));

function encodeState(state) {
  const parts = [`mdp=${encodeMdp(state.mdp)}`];
  for (const key of ["gamma", "noise", "seed", "sweeps", "k", "speed"]) {
    if (key === "gamma" || state[key] !== DEFAULTS[key]) parts.push(`${key}=${brief(state[key])}`);
  }
  if (state.play) parts.push("play=1");
  for (const {name, numbers} of state.operators) {
    const given = Object.entries(numbers).filter(([, number]) => number !== null && number !== false);
    parts.push("op=" + [name, ...given.map(([key, number]) => `${key}:${number === Infinity ? "none" : brief(+number)}`)].join(","));
  }
  return parts.join("&");
}

function encodeMdp(mdp) {
  if (mdp.kind === "chain") return ["chain", mdp.states, brief(mdp.success)].join(":");
  if (mdp.kind === "garnet") return ["garnet", mdp.states, mdp.actions, mdp.successors, mdp.seed].join(":");
  const runs = mdp.cells.replace(/(.)\1*/g, run => (run.length > 1 ? run.length : "") + run[0]);
  return ["grid", `${mdp.width}x${mdp.height}`, brief(mdp.slip), runs].join(":");
}

/** {state, problems}: problems is a list of sentences on what could not be read. */
function decodeState(text) {
  const state = structuredClone(DEFAULTS), problems = [], operators = [];
  for (const part of text.replace(/^.*#/s, "").split("&").filter(Boolean)) {
    const cut = part.indexOf("="), key = part.slice(0, cut), given = decodeURIComponent(part.slice(cut + 1));
    try {
      if (key === "mdp") state.mdp = decodeMdp(given);
      else if (key === "op") operators.push(decodeOperator(given));
      else if (key === "play") state.play = given === "1";
      else if (key === "k") state.k = readNumber("k", given, [0, Infinity], true);
      else if (["gamma", "noise", "speed"].includes(key)) state[key] = readNumber(key, given);
      else if (["seed", "sweeps"].includes(key)) state[key] = readNumber(key, given, LIMITS[key], true);
      else throw new Error(`the page knows no "${cut < 0 ? part : key}"`);
    } catch (error) {
      problems.push(error.message);
    }
  }
  if (operators.length > PANELS) problems.push(`the page shows ${PANELS} operators, not ${operators.length}`);
  if (operators.length) state.operators = operators.slice(0, PANELS);
  fitState(state);
  return {state, problems};
}

/** Numbers that depend on others: the sweeps on the memory that they take, and k on the sweeps. */
function fitState(state) {
  const {mdp} = state, pairs = mdp.kind === "grid" ? 4 * mdp.cells.length : mdp.states * (mdp.actions ?? 2);
  state.sweeps = Math.min(state.sweeps, Math.floor(LIMITS.entries / pairs));
  state.k = Math.min(state.k, state.sweeps);
}

function readNumber(name, text, [low, high] = LIMITS[name], whole = false) {
  const number = text === "none" ? Infinity : text === "" ? NaN : Number(text);
  if (!(number >= low && number <= high) || (whole && !Number.isInteger(number))) {
    throw new Error(`${name} is "${text}"; it must be ${whole ? "a whole number" : "a number"} from ${low} to ${high}`);
  }
  return number;
}

function decodeOperator(text) {
  const [name, ...given] = text.split(",");
  if (!Object.hasOwn(FAMILY, name)) throw new Error(`no operator is called "${name}"; the names are: ${Object.keys(FAMILY).join(", ")}`);
  const numbers = startNumbers(name);
  for (const pair of given) {
    const [key, number] = pair.split(":");
    if (!(key in numbers)) throw new Error(`${name} has no number "${key}"; it has: ${PARAMETERS[name].join(", ") || "none"}`);
    numbers[key] = readNumber(key, number ?? "", LIMITS[key], key === "limit");
    if (key === "limit") numbers[key] = numbers[key] === 1;
  }
  return {name, numbers};
}

/** The numbers that a newly chosen operator has; those that it shares with the one before are kept. */
function startNumbers(name, before = {}) {
  const numbers = {};
  for (const key of PARAMETERS[name]) numbers[key] = key in before ? before[key] : key === "lower_bound" ? null : FAMILY[name][key];
  return numbers;
}

function decodeMdp(text) {
  const [kind, ...given] = text.split(":");
  const whole = (name, i, limits) => readNumber(name, given[i] ?? "", limits, true);
  if (kind === "chain") {
    const states = whole("states", 0, LIMITS.states);
    if (states % 2 === 0) throw new Error(`states is ${states}; the chain needs an odd number, to have a middle`);
    return {kind, states, success: readNumber("success", given[1] ?? "0.7")};
  }
  if (kind === "garnet") {
    const [states, actions] = [whole("states", 0, LIMITS.garnetStates), whole("actions", 1, LIMITS.actions)];
    return {kind, states, actions, successors: whole("successors", 2, LIMITS.successors), seed: whole("seed", 3, LIMITS.seed)};
  }
  if (kind !== "grid") throw new Error(`mdp is "${kind}"; it must be chain, grid or garnet`);
  const [width, height] = (given[0] ?? "").split("x").map(side => readNumber("a side of the grid", side, LIMITS.side, true));
  const cells = (given[2] ?? "").replace(/(\d+)(.)/g, (_, count, cell) => cell.repeat(Math.min(+count, 400)));
  if (height === undefined || cells.length !== width * height || !/^[.wgsp]*$/.test(cells) || !cells.includes(".")) {
    throw new Error(`the grid "${text.slice(0, 40)}" cannot be read; it must have a cell (. w g s p) for each place, one of them open`);
  }
  return {kind, width, height, slip: readNumber("slip", given[1] ?? ""), cells};
}
