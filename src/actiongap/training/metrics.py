"""The metrics of a run, a row for each column of metrics.csv: figures, tables, the report and the docs follow it.

A new metric is computed in learning/learner.py (`Metrics`), written in rows.py, and named here and in docs/training.md.
A run that is older than a metric has no such column.
"""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """A column of metrics.csv."""

    column: str
    label: str
    meaning: str
    """One line, with what it is averaged over."""
    is_curve: bool = True
    """Whether it is drawn over steps and may be checked by a suite."""
    is_share: bool = False
    """Whether it lies in [0, 1]."""
    figure: str | None = None
    """The name of its own figure, if it has one; the report's page shows it in a chart of its own."""
    needs_gap_term: bool = False
    """Whether it means nothing for an operator with alpha 0."""


METRICS = (
    Metric("step", "Step", "environment steps so far, those of the warm-up included", is_curve=False),
    Metric(
        "evaluation_return",
        "Evaluation return",
        "mean undiscounted return of 10 greedy episodes (epsilon 0), at step 0 and every 5,000 steps: "
        "the paper's score",
        figure="curves",
    ),
    Metric("evaluation_return_std", "SD of the return", "their standard deviation (population)", is_curve=False),
    Metric("evaluation_length", "Length of an episode", "their mean length in steps", is_curve=False),
    Metric(
        "evaluation_cut",
        "Episodes cut",
        "how many were stopped by the evaluation's own limit of 10,000 steps",
        is_curve=False,
    ),
    Metric(
        "training_return",
        "Training return",
        "mean return of the training episodes that ended since the last row, with exploration",
    ),
    Metric("training_episodes", "Training episodes", "how many that were", is_curve=False),
    Metric("epsilon", "Epsilon", "the share of random actions now", is_curve=False, is_share=True),
    Metric("loss", "Loss", "mean loss of the updates since the last row"),
    Metric(
        "action_gap",
        "Action gap",
        "mean of the best minus the second best Q(s, .), online network: the paper's empirical action gap",
        figure="action-gap",
    ),
    Metric(
        "mean_action_gap",
        "Mean action gap",
        "mean of the best Q(s, .) minus the mean of the other actions, online network: "
        "what the authors' later code logs",
    ),
    Metric(
        "value",
        "Value V",
        "mean of max Q(s, .), online network, over states of the replay: the paper's V",
        figure="value",
    ),
    Metric("q_taken", "Q of the action taken", "mean of Q(s, a) of the action taken"),
    Metric(
        "kept",
        "Share of gap terms kept",
        "of the samples whose action is not greedy, the share whose gap term was kept: 1 for al, 0 for dqn",
        is_share=True,
        figure="kept",
        needs_gap_term=True,
    ),
    Metric(
        "capped",
        "Share of gap terms capped",
        "of the samples whose action is not greedy, the share whose gap term the cap made smaller",
        is_share=True,
        needs_gap_term=True,
    ),
    Metric("gap_movement", "How far gaps move", "how far gaps move: the e of capped AL"),
    Metric(
        "agreement",
        "Agreement with the target network",
        "share of states where online and target network have the same greedy action",
        is_share=True,
    ),
)
CURVES = tuple(metric for metric in METRICS if metric.is_curve)
"""Those that are drawn over steps."""
BY_COLUMN = {metric.column: metric for metric in METRICS}
