"use strict";
// What the page says: the operators in a sentence, the words that need one, and the states worth a link.

/** name: [label, what it does]. An operator without a line here goes by its name. */
const ABOUT = {
  dqn: ["T, value iteration", "The Bellman operator. It adds no gap term."],
  soft_dqn: ["Soft T", "Value iteration with a soft maximum in place of the maximum."],
  al: ["AL", "Advantage Learning: pushes every other action down, by α times its distance to the best."],
  clip_al: ["Clipped AL", "As AL, but only near the best: an action that is far below is left alone, and comes up fast."],
  pal: ["Persistent AL", "As AL, but no target falls below that of repeating the action."],
  clip_pal: ["Clipped persistent AL", "As persistent AL, with the push clipped as in clipped AL."],
  cvi: ["CVI", "Conservative Value Iteration: as AL, with a soft maximum, the mellowmax."],
  mdqn: ["Munchausen", "As AL, with a soft maximum and a push that is cut off at the floor."],
  clip_mdqn: ["Clipped Munchausen", "As Munchausen, with the push clipped as in clipped AL."],
  cap_al: ["Capped AL", "As AL, but no push is larger than a multiple of how far gaps moved in the last sweep."],
  cap_pal: ["Capped persistent AL", "As persistent AL, with the push capped as in capped AL."],
  cap_mdqn: ["Capped Munchausen", "As Munchausen, with the push capped as in capped AL."],
  look_ahead: ["Look-ahead AL", "As AL, but the action that is about to be greedy is spared. Its policies are those of T."],
};

/** A word on the page: [its tooltip]. Elements with data-term show it. */
const TERMS = {
  sweep: "One application of the operator to every state and action: from Q_k to Q_k+1. Sweep 0 is Q = 0 everywhere.",
  q: "Q(s, a): the discounted return that the table promises for taking action a in state s.",
  greedy: "The action with the largest Q in a state. The policy takes it everywhere.",
  gap: "The best minus the second best Q of a state, averaged over states. An error smaller than half of it cannot change the greedy action.",
  loss: "How much worse the greedy policy is than the best one, in the state where it is worst: max |V* − V^π|. 0 is optimal.",
  wrong: "States where the greedy action is not an optimal one.",
  since: "The sweep from which the greedy policy is optimal and stays so to the end.",
  gamma: "The discount γ: what a reward one step later is worth. Close to 1 looks far ahead.",
  noise: "σ: the standard deviation of a random error that is added to every Q at every sweep, the same in each panel.",
  seed: "The random errors, or the random MDP, that belong to this number.",
  alpha: "α: how hard the gap term pushes. In the limit AL's gap is 1 / (1 − α) times as wide.",
  clip_ratio: "The clip ratio c: the push is kept only where Q − Q_l is at least c times V − Q_l. Towards 1 hardly anything is pushed.",
  lower_bound: "The lower bound Q_l that the clip ratio measures from. The paper's rule is the smallest reward / (1 − γ).",
  temperature: "The temperature τ: how soft the maximum is. Towards 0 it is the maximum.",
  floor: "The floor l₀: the push is never larger than α times this.",
  cap: "The cap: the push is at most α · cap · e, with e how far gaps moved by themselves in the last sweep.",
  limit: "What happens to the push on an action that is far below the best: dropped, as in the paper, or cut to the size that it has at the edge.",
  success: "How likely a move goes the way it is meant to; else it goes the other way.",
  slip: "How likely a move goes to one of its two sides instead.",
  mdp: "A Markov decision process: states, actions, rewards, and where each action leads.",
  garnet: "A random MDP: each action leads to a few random states and pays a random reward in [−1, 1).",
  successors: "How many next states each action can lead to.",
};

const LABELS = {
  alpha: "α", clip_ratio: "c", lower_bound: "Q_l", temperature: "τ", floor: "l₀", cap: "cap", limit: "far", gamma: "γ", noise: "noise σ",
  seed: "seed", success: "success", slip: "slip", states: "states", actions: "actions", successors: "successors",
  width: "width", height: "height",
};

/** [title, what to look for, state]. */
const PRESETS = [
  ["The paper's chain walk", "The paper's numbers: optimal from sweep 78, 138 and 113. Press play, and watch where the greedy action is wrong.", "mdp=chain:11:0.7&gamma=0.99&k=10&op=dqn&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9"],
  ["AL holds on to a wrong action", "After 130 sweeps AL still goes the wrong way, and clipped AL beside it does not.",
   "mdp=chain:11:0.7&gamma=0.99&sweeps=300&k=130&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9"],
  ["What a gap is for", "With errors in every sweep T keeps changing its mind, and AL does not. Look-ahead AL has a gap as wide, and the mind of T: what protects is AL's memory.",
   "mdp=chain:11:0.7&gamma=0.99&noise=1&k=500&op=dqn&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9&op=look_ahead,alpha:0.99"],
  ["A near goal and a far one", "Near the small goal, AL needs long to see that the far one is worth more. Draw walls, goals and pits of your own.",
   "mdp=grid:10x7:0.1:9.g.3w.3w3.w5.w3.w.s.p.w3.w5.w3.3w.3w12.&gamma=0.97&sweeps=300&k=36&op=dqn&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9,lower_bound:-10"],
  ["The clip ratio", "From near AL to near T: the supplement's ablation.",
   "mdp=chain:11:0.7&gamma=0.99&k=118&" + [0.6, 0.8, 0.9, 0.95].map(c => `op=clip_al,alpha:0.99,clip_ratio:${c}`).join("&")],
  ["Rules without a bound", "Optimal from sweep 138, 113, 108 and 78. Capped AL needs no bound on the values; look-ahead AL has T's speed, and AL's gap.",
   "mdp=chain:11:0.7&gamma=0.99&k=110&op=al,alpha:0.99&op=clip_al,alpha:0.99,clip_ratio:0.9&op=cap_al,alpha:0.99,cap:8&op=look_ahead,alpha:0.99"],
];
