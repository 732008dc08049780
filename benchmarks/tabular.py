"""Exact sweeps on a large Garnet: a Bellman sweep against QuantEcon's, every operator against a Bellman sweep.

One thread, one run, rounds interleaved; the clock is the process's own time, so that other work on the machine matters
less; each figure is the median over rounds of the ratio within a round. Prints, and
with --out writes, how the cost grows with the number of states.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sparse
from peers.processor_time import seconds
from quantecon.markov import DiscreteDP

from actiongap import mdps, operators

ACTIONS, SUCCESSORS, GAMMA = 4, 5, 0.99


def measure(states: int, rounds: int) -> dict:
    mdp = mdps.garnet(states, ACTIONS, SUCCESSORS, seed=0)
    rows = sparse.vstack(mdp.transitions_by_action, format="csr")
    by_state = rows[np.arange(states * ACTIONS).reshape(ACTIONS, states).T.ravel()]
    pairs = np.indices((states, ACTIONS))
    peer = DiscreteDP(mdp.rewards.ravel(), sparse.csr_matrix(by_state), GAMMA, pairs[0].ravel(), pairs[1].ravel())
    q = np.asfortranarray(np.random.default_rng(0).normal(size=(states, ACTIONS)))
    values, result = q.max(axis=1), np.empty(states)
    sweeps = {name: operators.make(name) for name in operators.names()}
    np.testing.assert_allclose(sweeps["dqn"].apply(q, mdp, GAMMA).max(axis=1), peer.bellman_operator(values))
    times: dict[str, list[float]] = {name: [] for name in ["quantecon", *sweeps]}
    for _ in range(rounds):
        times["quantecon"].append(seconds(lambda: peer.bellman_operator(values, Tv=result)))
        for name, operator in sweeps.items():
            times[name].append(seconds(lambda operator=operator: operator.apply(q, mdp, GAMMA, scale=0.1)))

    def ratio(name: str, to: str) -> float:
        return float(np.median(np.array(times[name]) / np.array(times[to])))

    return {
        "states": states,
        "bellman_ms": 1e3 * float(np.median(times["dqn"])),
        "bellman_to_quantecon": ratio("dqn", "quantecon"),
        "operator_to_bellman": {name: ratio(name, "dqn") for name in sweeps},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", help="write the figures as JSON")
    arguments = parser.parse_args()
    results = []
    for states in arguments.states:
        result = measure(states, arguments.rounds)
        results.append(result)
        print(
            f"{states:>9,} states: Bellman sweep {result['bellman_ms']:.3f} ms, "
            f"{result['bellman_to_quantecon']:.2f} of QuantEcon's time; in Bellman sweeps: "
            + ", ".join(f"{name} {ratio:.2f}" for name, ratio in result["operator_to_bellman"].items()),
            flush=True,
        )
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
