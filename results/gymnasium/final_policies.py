"""The final policies of runs, each over 100 greedy episodes: python final_policies.py runs/gymnasium/cartpole"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np

from actiongap import Agent, results

means = defaultdict(list)
for run in results.find(sys.argv[1]):
    if run.state != "finished":
        continue
    means[run.environment, run.variant].append(float(np.mean(Agent.load(run.path).evaluate(100, seed=12345).returns)))
for (environment, variant), values in means.items():
    told = ", ".join(f"{value:.1f}" for value in values)
    print(f"| {environment} | {variant} | {told} | {np.median(values):.1f} |")
