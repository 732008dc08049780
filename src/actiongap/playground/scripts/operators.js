"use strict";
// The operators: operators.py's one formula. Python writes their numbers into FAMILY, and which of those one may change
// into PARAMETERS.
//
//   value      v(q)    = max q + tau (log sum exp((q - max q) / tau) - mellow log A)     just max q at tau = 0
//   gap term   g(q)_a  = alpha max(q_a - v(q), floor, -cap e)     kept only where  q_a - Q_l >= c (max q - Q_l), else 0
//                        limit: else it is cut at the size alpha (1 - c) (max q - Q_l)
//                        e: how far gaps moved in the last sweep
//   look-ahead           no gap term for the action that is greedy in T Q, as in tabular/look_ahead.py
//   persistent           the larger of the target and r + gamma E[q'_a]

const NEUTRAL = {
  alpha: 0, temperature: 0, mellow: 0, floor: -Infinity, clip_ratio: 0, lower_bound: -Infinity, persistent: false,
  cap: Infinity, limit: false, look_ahead: false,
};

/** A chosen operator, {name, numbers}, as numbers alone. A lower bound of null is the paper's rule, R_min / (1 - gamma). */
function makeOperator({name, numbers}, mdp, gamma) {
  const made = {...NEUTRAL, ...FAMILY[name], ...numbers};
  if (numbers.lower_bound === null) made.lower_bound = mdp.rewardMin / (1 - gamma);
  return made;
}

function maximum(q, start, actions) {
  let best = q[start];
  for (let a = 1; a < actions; a++) if (q[start + a] > best) best = q[start + a];
  return best;
}

/** v(q) of the row that starts there. */
function value(operator, q, start, actions) {
  const best = maximum(q, start, actions), {temperature, mellow} = operator;
  if (temperature === 0) return best;
  let sum = 0;
  for (let a = 0; a < actions; a++) sum += Math.exp((q[start + a] - best) / temperature);
  return best + temperature * (Math.log(sum) - mellow * Math.log(actions));
}

/** Whether an action is near enough to the best for its gap term to be left as it is. */
function isInside({clip_ratio, lower_bound}, number, best) {
  return lower_bound === -Infinity || number - lower_bound >= clip_ratio * (best - lower_bound);
}

/** Whether a gap term is added, in full or cut. */
function isKept(operator, number, best) {
  return operator.alpha > 0 && (isInside(operator, number, best) || (operator.limit && best > operator.lower_bound));
}

/** What is added to the target of action a of the row that starts there. `scale` is e; where it is infinite, no cap is. */
function gapTerm(operator, q, start, actions, a, rowValue, scale) {
  const {alpha, floor, clip_ratio, lower_bound, cap, limit} = operator, best = maximum(q, start, actions);
  let advantage = Math.max(q[start + a] - rowValue, floor);
  if (cap !== Infinity && scale !== Infinity) advantage = Math.max(advantage, -cap * scale);
  if (isInside(operator, q[start + a], best)) return alpha * advantage;
  return limit ? alpha * Math.max(advantage, -(1 - clip_ratio) * Math.max(best - lower_bound, 0)) : 0;
}

/** One exact application to the table q [S * A]. `scale` is e; `error`, or null, is what T Q is wrong by. */
function applyOperator(operator, mdp, q, gamma, scale, error) {
  const {states, actions} = mdp, values = new Float64Array(states), result = new Float64Array(q.length);
  for (let s = 0; s < states; s++) values[s] = value(operator, q, s * actions, actions);
  expectedReturns(mdp, values, gamma, result);
  // Look-ahead chooses by T Q with its error, since nobody sees it without.
  if (error && operator.look_ahead) addTo(result, error);
  if (operator.alpha > 0) {
    for (let s = 0; s < states; s++) {
      const start = s * actions, spared = operator.look_ahead ? greedyAction(result, start, actions) : -1;
      for (let a = 0; a < actions; a++) {
        if (a !== spared) result[start + a] += gapTerm(operator, q, start, actions, a, values[s], scale);
      }
    }
  }
  if (operator.persistent) keepRepeated(mdp, q, gamma, result);
  if (error && !operator.look_ahead) addTo(result, error);
  return result;
}

function addTo(table, error) {
  for (let i = 0; i < table.length; i++) table[i] += error[i];
}

/** No target below that of repeating the action: r + gamma E[q(s', a)]. */
function keepRepeated({actions, starts, next, probability, rewards}, q, gamma, result) {
  for (let pair = 0; pair < q.length; pair++) {
    let repeated = 0;
    for (let i = starts[pair]; i < starts[pair + 1]; i++) repeated += probability[i] * q[next[i] * actions + pair % actions];
    result[pair] = Math.max(result[pair], rewards[pair] + gamma * repeated);
  }
}

/** e: the root mean square, over states and actions not greedy in q, of how far gaps moved from the table before. */
function gapMovement({states, actions}, q, before) {
  let sum = 0;
  for (let s = 0; s < states; s++) {
    const start = s * actions, best = start + greedyAction(q, start, actions);
    for (let pair = start; pair < start + actions; pair++) sum += ((before[best] - q[best]) - (before[pair] - q[pair])) ** 2;
  }
  return Math.sqrt(sum / Math.max(1, states * (actions - 1)));
}
