"""Which rule for the gap term is best, not knowing the task: regret against the best fixed clip ratio in hindsight.

A setting is an MDP, an alpha and a size of noise: from where a slow change of mind costs to where errors do. A rule's
loss in a setting is the mean over training, states and seeds of V* - V^pi, pi greedy in Q. Its ratio is that loss
divided by the least loss of a fixed clip ratio c there, AL (c = 0) and T (c = 1) among them: what one would have had
who knew the best c. A rule is judged by the worst and by the mean of its ratios. Seeds are the same for all rules.

    study.run(Plan(), "out/rules")      or: actiongap reproduce rules
"""
