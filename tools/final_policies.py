"""The final policies of runs, each over 100 greedy episodes: python tools/final_policies.py runs/gymnasium/cartpole"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np

from actiongap import Agent, analysis

means = defaultdict(list)
for run in analysis.find(sys.argv[1]):
    if run.status == "finished":
        returns = Agent.load(run.path).evaluate(100, seed=12345).returns
        means[run.environment, run.variant].append(float(np.mean(returns)))
for (environment, variant), values in means.items():
    each = ", ".join(f"{value:.1f}" for value in values)
    print(f"| {environment} | {variant} | {each} | {np.median(values):.1f} |")
