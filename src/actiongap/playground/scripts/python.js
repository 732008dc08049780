"use strict";
// The state of the page as lines of Python that run it with the library. There is no gridworld in the library, and the
// errors of a noisy run are drawn by another generator there.

function inPython({mdp, gamma, noise, seed, sweeps, operators}, made) {
  if (mdp.kind === "grid") return "# The library has no gridworld of its own. MDP(transitions, rewards, termination) takes any.";
  const mdpLine = mdp.kind === "chain"
    ? `mdps.chain_walk(states=${mdp.states}, success=${brief(mdp.success)})`
    : `mdps.garnet(states=${mdp.states}, actions=${mdp.actions}, successors=${mdp.successors}, seed=${mdp.seed})`;
  const options = `gamma=${brief(gamma)}, iterations=${sweeps}` + (noise > 0 ? `, noise=${brief(noise)}, seed=${seed}` : "");
  const written = number => (number === Infinity ? 'float("inf")' : number === true ? "True" : brief(number));
  const lines = operators.map(({name, numbers}) => {
    const known = {...numbers, ...(numbers.lower_bound === null && {lower_bound: made.rewardMin / (1 - gamma)})};
    const given = Object.entries(known).filter(([, number]) => number !== false).map(([key, number]) => `${key}=${written(number)}`);
    return `    ${name === "look_ahead" ? "LookAhead" : `operators.${name}`}(${given.join(", ")}),`;
  });
  const looksAhead = operators.some(({name}) => name === "look_ahead");
  return [
    "from actiongap import iterate, mdps, operators",
    ...(looksAhead ? ["from actiongap.tabular.look_ahead import LookAhead"] : []), "", `mdp = ${mdpLine}`, "for operator in [", ...lines, "]:",
    `    trace = iterate(operator, mdp, ${options})`, "    print(trace.optimal_from, trace.mean_gap[-1], trace.loss[-1])",
  ].join("\n");
}
