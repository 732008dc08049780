"use strict";
// An operator applied again and again to a table, and what happens on the way, as in tabular/iteration.py.

/** Q_0 = 0, Q_1, ... and, one number a sweep:
 *
 *   meanGap      mean over states of the best minus the second best Q_k
 *   loss         max |V* - V^pi| of the policy greedy in Q_k
 *   wrong        states whose greedy action is not optimal
 *   valueError   max |V* - V_k|
 *   low, high    the smallest and the largest Q so far: an axis that only grows does not jump about
 *
 * A trace grows by step(), so that a page can draw it while it is being computed.
 */
class Trace {
  constructor(operator, mdp, solution, {gamma, noise, seed, sweeps}) {
    Object.assign(this, {operator, mdp, solution, gamma, noise, sweeps});
    this.tables = [];
    this.meanGap = [];
    this.loss = [];
    this.wrong = [];
    this.valueError = [];
    this.low = [];
    this.high = [];
    this.draw = noise > 0 ? normalSource(seed) : null;
    this.policy = null;
    this.scale = Infinity;  // Before the first sweep nothing has moved, and there is no cap.
    this.step();
  }

  get isDone() { return this.tables.length > this.sweeps; }

  /** The sweep from which the greedy policy stays optimal; null if it does not, or if that is not known yet. */
  get optimalFrom() {
    const from = this.wrong.findLastIndex(count => count > 0) + 1;
    return this.isDone && from <= this.sweeps ? from : null;
  }

  step() {
    const {mdp, operator, tables} = this, before = tables.at(-1) ?? null;
    let q = new Float64Array(mdp.states * mdp.actions);
    if (before) {
      const error = this.draw && q.map(() => this.noise * this.draw());
      q = applyOperator(operator, mdp, before, this.gamma, this.scale, error);
      if (operator.cap !== Infinity) this.scale = gapMovement(mdp, q, before);
    }
    tables.push(q);
    this.measure(q);
  }

  measure(q) {
    const {mdp, solution} = this, {states, actions} = mdp, policy = greedyPolicy(q, mdp);
    let gaps = 0, wrong = 0, error = 0;
    for (let s = 0; s < states; s++) {
      gaps += actionGap(q, s * actions, actions, policy[s]);
      wrong += 1 - solution.optimal[s * actions + policy[s]];
      error = Math.max(error, Math.abs(solution.values[s] - q[s * actions + policy[s]]));
    }
    this.meanGap.push(states ? gaps / states : 0);
    this.wrong.push(wrong);
    this.valueError.push(error);
    this.loss.push(this.policyLoss(policy, wrong));
    this.low.push(q.reduce((a, b) => Math.min(a, b), this.low.at(-1) ?? Infinity));
    this.high.push(q.reduce((a, b) => Math.max(a, b), this.high.at(-1) ?? -Infinity));
  }

  /** Computed again only when the policy changes. */
  policyLoss(policy, wrong) {
    if (wrong === 0) return 0;
    if (this.policy === null || !policy.every((action, s) => action === this.policy[s])) {
      const values = policyValues(this.mdp, policy, this.gamma);
      this.policy = policy;
      this.lossOfPolicy = largest(values.map((number, s) => this.solution.values[s] - number));
    }
    return this.lossOfPolicy;
  }
}

/** The best minus the second best of a row, whose best action is `greedy`. */
function actionGap(q, start, actions, greedy) {
  let second = -Infinity;
  for (let a = 0; a < actions; a++) if (a !== greedy && q[start + a] > second) second = q[start + a];
  return actions > 1 ? q[start + greedy] - second : 0;
}

/** The traces of all panels go on, side by side, until all are done or the time is up. Whether all are done. */
function advanceTraces(traces, milliseconds) {
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    let busy = false;
    for (const trace of traces) if (!trace.isDone) { trace.step(); busy = true; }
    if (!busy) return true;
  }
  return traces.every(trace => trace.isDone);
}
