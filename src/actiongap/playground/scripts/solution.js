"use strict";
// The solution of an MDP: V*, Q* and every optimal action, by policy iteration with direct solves, as in
// tabular/solution.py. The tolerances are the same.

/** The first best action of a row: of equals the first, as NumPy's argmax. */
function greedyAction(q, start, actions) {
  let best = 0;
  for (let a = 1; a < actions; a++) if (q[start + a] > q[start + best]) best = a;
  return best;
}

function greedyPolicy(q, mdp, policy = new Int32Array(mdp.states)) {
  for (let s = 0; s < mdp.states; s++) policy[s] = greedyAction(q, s * mdp.actions, mdp.actions);
  return policy;
}

/** V of a policy: (I - gamma P) V = r, by elimination inside the band that the transitions reach.
 *
 * The matrix has a dominant diagonal, so that no pivoting is needed. A chain or a grid has a narrow band, and a policy of
 * a 20 x 20 grid takes a fraction of a millisecond.
 */
function policyValues(mdp, policy, gamma) {
  const {states, actions, starts, next, probability, bandwidth} = mdp;
  const width = 2 * bandwidth + 1, values = new Float64Array(states);
  const matrix = (mdp.workspace ??= new Float64Array(states * width)).fill(0);
  for (let s = 0; s < states; s++) {
    const pair = s * actions + policy[s], diagonal = s * width + bandwidth;
    matrix[diagonal] = 1;
    for (let i = starts[pair]; i < starts[pair + 1]; i++) matrix[diagonal + next[i] - s] -= gamma * probability[i];
    values[s] = mdp.rewards[pair];
  }
  for (let s = 0; s < states; s++) {
    const diagonal = s * width + bandwidth, reach = Math.min(bandwidth, states - 1 - s);
    for (let below = 1; below <= reach; below++) {
      const row = diagonal + below * (width - 1), factor = matrix[row] / matrix[diagonal];
      if (factor === 0) continue;
      for (let right = 1; right <= reach; right++) matrix[row + right] -= factor * matrix[diagonal + right];
      values[s + below] -= factor * values[s];
    }
  }
  for (let s = states - 1; s >= 0; s--) {
    const diagonal = s * width + bandwidth, reach = Math.min(bandwidth, states - 1 - s);
    for (let right = 1; right <= reach; right++) values[s] -= matrix[diagonal + right] * values[s + right];
    values[s] /= matrix[diagonal];
  }
  return values;
}

const largest = numbers => numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0);

/** {values, qValues, optimal}: V* [S], Q* [S * A], and 1 for each optimal action [S * A]. */
function solve(mdp, gamma) {
  const {states, actions} = mdp, q = new Float64Array(states * actions);
  const policy = greedyPolicy(mdp.rewards, mdp);
  for (;;) {
    const values = policyValues(mdp, policy, gamma);
    expectedReturns(mdp, values, gamma, q);
    // Only a gain beyond rounding changes an action: equal actions would be swapped for ever.
    const needed = 1e-13 * Math.max(1, largest(q)) / (1 - gamma);
    let improved = false;
    for (let s = 0; s < states; s++) {
      const better = greedyAction(q, s * actions, actions);
      if (q[s * actions + better] - q[s * actions + policy[s]] > needed) { policy[s] = better; improved = true; }
    }
    if (improved) continue;
    const best = values.map((_, s) => q[s * actions + greedyAction(q, s * actions, actions)]);
    const tie = 1e-10 * Math.max(1, largest(best)) / (1 - gamma);
    return {values: best, qValues: q, optimal: Uint8Array.from(q, (number, i) => number >= best[Math.floor(i / actions)] - tie)};
  }
}
