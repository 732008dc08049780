"use strict";
// The MDPs: the paper's chain walk, a gridworld that is drawn, and Garnets. The first and the last are those of
// tabular/mdps.py, number by number. A pair (s, a) stands at s * actions + a; its next states are the entries
// starts[pair] ... starts[pair + 1] - 1 of `next` and `probability`. What is missing to 1 terminates, and bootstraps 0.

/** An MDP from outcomes(s, a), a list of [probability, next state or null where it ends, reward on arrival]. */
function tabulate(states, actions, outcomes, more) {
  const starts = new Int32Array(states * actions + 1), rewards = new Float64Array(states * actions);
  const next = [], probability = [];
  let bandwidth = 0;
  for (let s = 0; s < states; s++) {
    for (let a = 0; a < actions; a++) {
      const pair = s * actions + a, merged = new Map();
      for (const [chance, to, reward] of outcomes(s, a)) {
        rewards[pair] += chance * reward;
        if (to !== null && chance > 0) merged.set(to, (merged.get(to) ?? 0) + chance);
      }
      for (const [to, chance] of merged) {
        next.push(to);
        probability.push(chance);
        bandwidth = Math.max(bandwidth, Math.abs(to - s));
      }
      starts[pair + 1] = next.length;
    }
  }
  return {
    states, actions, starts, rewards, bandwidth, next: Int32Array.from(next), probability: Float64Array.from(probability),
    rewardMin: rewards.reduce((a, b) => Math.min(a, b), Infinity), ...more,
  };
}

/** The chain walk of the paper's Figure 1: left is optimal everywhere, but the right side pays first. */
function chainWalk({states, success}) {
  const middle = (states - 1) / 2;
  const arrival = s => (s === 0 ? 3 : Math.sign(s - middle));
  const left = s => Math.max(s - 1, 0), right = s => Math.min(s + 1, states - 1);
  const outcomes = (s, a) => {
    const [intended, other] = a === 0 ? [left(s), right(s)] : [right(s), left(s)];
    return [[success, intended, arrival(intended)], [1 - success, other, arrival(other)]];
  };
  return tabulate(states, 2, outcomes, {kind: "chain", actionNames: ["left", "right"], arrows: ["←", "→"]});
}

/** A random MDP (Archibald et al. 1995), the one of mdps.garnet(states, actions, successors, seed). */
function garnet({states, actions, successors, seed}) {
  const source = numpyRandom(seed), pairs = states * actions;
  const drawn = (rows, columns, draw) => Array.from({length: rows}, () => Array.from({length: columns}, draw));
  const cuts = drawn(pairs, successors - 1, source.random).map(row => [0, ...row.sort((a, b) => a - b), 1]);
  const reached = drawn(pairs, successors, () => source.integer(states));
  const reward = drawn(pairs, 1, () => -1 + 2 * source.random());
  const outcomes = (s, a) => {
    const pair = s * actions + a;
    return reached[pair].map((to, i) => [cuts[pair][i + 1] - cuts[pair][i], to, reward[pair][0]]);
  };
  const letters = ["A", "B", "C", "D"].slice(0, actions);
  return tabulate(states, actions, outcomes, {kind: "garnet", actionNames: letters, arrows: letters});
}

/** What each kind of cell pays on arrival. Goals and pits end the episode; a wall cannot be entered. */
const CELL_REWARDS = {g: 10, s: 1, p: -10};
const MOVES = [[0, -1], [1, 0], [0, 1], [-1, 0]];

/** A gridworld from its cells, row by row: "." open, "w" wall, "g" goal, "s" small goal, "p" pit.
 *
 * A move goes the intended way, but with probability `slip` to one of its two sides, each as likely. A move into a wall
 * or off the grid stays. Only open cells are states: `stateOf[cell]` is null elsewhere.
 */
function gridWorld({width, height, slip, cells}) {
  const stateOf = [], cellOf = [];
  for (let cell = 0; cell < width * height; cell++) stateOf.push(cells[cell] === "." ? cellOf.push(cell) - 1 : null);
  const moved = (cell, [dx, dy]) => {
    const x = cell % width + dx, y = Math.floor(cell / width) + dy, inside = x >= 0 && x < width && y >= 0 && y < height;
    return inside && cells[y * width + x] !== "w" ? y * width + x : cell;
  };
  const outcomes = (s, a) => [[1 - slip, a], [slip / 2, (a + 1) % 4], [slip / 2, (a + 3) % 4]].map(([chance, way]) => {
    const to = moved(cellOf[s], MOVES[way]);
    return [chance, stateOf[to], CELL_REWARDS[cells[to]] ?? 0];
  });
  const names = ["up", "right", "down", "left"], more = {width, height, cells, stateOf, cellOf};
  return tabulate(cellOf.length, 4, outcomes, {kind: "grid", actionNames: names, arrows: ["↑", "→", "↓", "←"], ...more});
}

const MDP_MAKERS = {chain: chainWalk, grid: gridWorld, garnet};

function makeMdp(choice) {
  return MDP_MAKERS[choice.kind](choice);
}

/** r + gamma E[v(s') | s, a] into `result`, [S * A]. */
function expectedReturns(mdp, values, gamma, result) {
  const {starts, next, probability, rewards} = mdp;
  for (let pair = 0; pair < rewards.length; pair++) {
    let expected = 0;
    for (let i = starts[pair]; i < starts[pair + 1]; i++) expected += probability[i] * values[next[i]];
    result[pair] = rewards[pair] + gamma * expected;
  }
  return result;
}
