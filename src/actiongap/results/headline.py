"""The answer in words: who is best, by how much, how sure, and what was left out.

    95% interval of a difference of means = a - b ± t se,    se^2 = sd_a^2 / n_a + sd_b^2 / n_b        (Welch)

Two variants are told apart where this interval leaves out 0, and both have at least three runs. Otherwise the words
say that the data cannot tell. (A bootstrap of three or five runs would be too sure: it is shown, but decides nothing.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from actiongap.results import labels
from actiongap.results.comparison import Comparison, Entry, Interval

ENOUGH_SEEDS = 3


class Difference(NamedTuple):
    """One variant against another on one environment: of mean scores, as scores or in % where `in_percent`."""

    value: float
    interval: Interval | None
    in_percent: bool
    certain: bool


def headline(comparison: Comparison) -> list[str]:
    """Sentences, the most important first."""
    environments = [name for name in comparison.environments if ranked(comparison, name)]
    if not environments:
        return ["No run has got far enough to be scored yet.", *_left_out(comparison)]
    overall = _overall(comparison) if len(environments) > 1 else []
    told = [_environment(comparison, name) for name in environments]
    if overall:
        # The answer over all comes first, then one line for each environment; the reasons are in the tables.
        return overall + [sentences[0] for sentences in told] + _left_out(comparison)
    return [sentence for sentences in told for sentence in sentences] + _left_out(comparison)


def ranked(comparison: Comparison, environment: str) -> list[Entry]:
    """The scored variants on an environment, the highest mean score first."""
    entries = [
        entry
        for variant in comparison.variants
        if (entry := comparison.entries.get((environment, variant))) is not None and len(entry.scores)
    ]
    return sorted(entries, key=lambda entry: -entry.mean)


def difference(one: Entry, other: Entry, baseline: Entry | None = None, random: float | None = None) -> Difference:
    """How much better `one` is than `other`. In % of the baseline's distance from random play, where that is known."""
    unit = abs(baseline.mean - random) if baseline is not None and random is not None else 0.0
    scale = 100 / unit if unit else 1.0
    value = scale * (one.mean - other.mean)
    if min(len(one.scores), len(other.scores)) < 2:
        return Difference(value, None, bool(unit), False)
    runs = np.array([len(one.scores), len(other.scores)])
    errors = np.array([one.standard_deviation, other.standard_deviation]) ** 2 / runs
    squared = errors.sum()
    freedom = squared**2 / np.sum(errors**2 / (runs - 1)) if squared else 1.0
    half = scale * float(np.sqrt(squared) * student.ppf(0.975, freedom))
    enough = min(len(one.scores), len(other.scores)) >= ENOUGH_SEEDS
    return Difference(value, (value - half, value + half), bool(unit), enough and abs(value) > half)


def _environment(comparison: Comparison, environment: str) -> list[str]:
    ranking = ranked(comparison, environment)
    place = labels.environment(environment)
    best = ranking[0]
    name = labels.variant(best.variant)
    baseline = comparison.entries.get((environment, comparison.baseline or ""))
    if baseline is not None and not len(baseline.scores):
        baseline = None
    if len(ranking) == 1:
        return [f"Only {name} was scored on {place}: {number(best.mean)}{_error(best)}. There is nothing to compare."]
    random = comparison.random.get(environment)
    if baseline is None:
        second = ranking[1]
        told = (
            f"{name} has the highest mean score on {place}: {number(best.mean)}, before "
            f"{labels.variant(second.variant)} with {number(second.mean)}. There is no scored baseline."
        )
        return [told, _runner_up(best, second, None, random)]
    if best is baseline:
        second = ranking[1]
        told = (
            f"No variant beats {name}, the baseline, on {place}: {number(best.mean)}, before "
            f"{labels.variant(second.variant)} with {number(second.mean)}."
        )
        return [told, _runner_up(best, second, baseline, random)]
    against = difference(best, baseline, baseline, random)
    numbers = f"{number(best.mean)} against {labels.variant(baseline.variant)}'s {number(baseline.mean)}"
    gain = f"{_amount(against)} (95% interval {_range(against)})"
    second = ranking[1]
    alone = second is baseline or difference(best, second, baseline, random).certain
    if against.certain and alone:
        first = f"{name} is best on {place}: {numbers}, {gain}."
    elif against.certain:
        first = (
            f"{name} beats {labels.variant(baseline.variant)} on {place}: {numbers}, {gain}; "
            f"whether it beats {labels.variant(second.variant)} too, the data cannot tell."
        )
    else:
        first = (
            f"{name} has the highest mean on {place}, {numbers}, {_amount(against)}, "
            f"but the data cannot tell the two apart: {_why(best, baseline, against)}."
        )
    sentences = [first]
    if best.probability_of_improvement is not None and min(len(best.scores), len(baseline.scores)) >= ENOUGH_SEEDS:
        share, (low, high) = best.probability_of_improvement
        interval = f"95% interval {100 * low:.0f} to {100 * high:.0f}%; " if low < high else ""
        sentences.append(
            f"How sure: a run of {name} beat one of {labels.variant(baseline.variant)} in {100 * share:.0f}% of "
            f"{len(best.scores) * len(baseline.scores)} pairs ({interval}50% would be a draw)."
        )
    if second is not baseline:
        sentences.append(_runner_up(best, second, baseline, random))
    return sentences


def _runner_up(best: Entry, second: Entry, baseline: Entry | None, random: float | None) -> str:
    between = difference(best, second, baseline, random)
    name, best_name = labels.variant(second.variant), labels.variant(best.variant)
    if between.certain:
        return f"{name} is second with {number(second.mean)}, {_amount(between).lstrip('+')} behind {best_name}."
    return (
        f"The data cannot tell {best_name} from {name}, which is second with {number(second.mean)}: "
        f"{_why(best, second, between)}."
    )


def _overall(comparison: Comparison) -> list[str]:
    """Over all environments. Only variants that were scored on as many environments as any are compared."""
    most = max((len(aggregate.environments) for aggregate in comparison.aggregates.values()), default=0)
    if most < 2:
        return ["The environments cannot be put together: the scores of a random policy there are not known."]
    full = [aggregate for aggregate in comparison.aggregates.values() if len(aggregate.environments) == most]
    best = max(full, key=lambda aggregate: aggregate.interquartile_mean)
    name = labels.variant(best.variant)
    baseline = comparison.aggregates.get(comparison.baseline or "")
    low, high = best.interval
    sentences = []
    if baseline is None or best is baseline:
        sentences.append(
            f"Over {most} environments no variant beats {name}: it has the highest interquartile mean of normalised "
            f"scores, {best.interquartile_mean:.2f} (95% interval {low:.2f} to {high:.2f})."
        )
    else:
        base_name = labels.variant(baseline.variant)
        apart = low > baseline.interval[1]
        close = [
            labels.variant(each.variant) for each in full if each not in (best, baseline) and each.interval[1] >= low
        ]
        few = min((len(entry.scores) for entry in comparison.entries.values()), default=0) < ENOUGH_SEEDS
        numbers = (
            f"interquartile mean of normalised scores {best.interquartile_mean:.2f} "
            f"(95% interval {low:.2f} to {high:.2f}) against {base_name}'s {baseline.interquartile_mean:.2f}"
        )
        gain = f"mean improvement {best.mean_improvement:+.0f}%"
        if apart and not few:
            verb = f"beats {base_name}" if close else "is best"
            sentences.append(f"Over {most} environments {name} {verb}: {gain}, {numbers}.")
        else:
            why = f"there are fewer than {ENOUGH_SEEDS} seeds" if few else "the intervals overlap"
            sentences.append(
                f"Over {most} environments {name} has the highest {numbers}, {gain}, "
                f"but the data cannot tell the two apart: {why}."
            )
        if best.probability_of_improvement is not None:
            share, (share_low, share_high) = best.probability_of_improvement
            sentences.append(
                f"How sure: a run of {name} beat one of {base_name} on the same environment in {100 * share:.0f}% of "
                f"all pairs (95% interval {100 * share_low:.0f} to {100 * share_high:.0f}%)."
            )
        if close and apart:
            sentences.append(
                f"Its interval overlaps with that of {', '.join(close)}: the data cannot tell which is best."
            )
    missing = [variant for variant in comparison.variants if variant not in {each.variant for each in full}]
    if missing:
        sentences.append(
            "Not compared over all environments, for want of scores on some: "
            f"{', '.join(map(labels.variant, missing))}."
        )
    return sentences


def _left_out(comparison: Comparison) -> list[str]:
    """What the numbers do not hold: runs that failed, are under way, or were not made."""
    scored = {(entry.environment, entry.variant, seed) for entry in comparison.entries.values() for seed in entry.seeds}
    out = [run for run in comparison.runs if (run.environment, run.variant, run.seed) not in scored]
    sentences = []
    if out:
        states: dict[str, int] = {}
        for run in out:
            state = "too short" if run.state == "finished" else run.state
            states[state] = states.get(state, 0) + 1
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        verb = "is" if len(out) == 1 else "are"
        sentences.append(f"{len(out)} of {len(comparison.runs)} runs {verb} left out of the scores: {told}.")
    for environment, step in comparison.scored_at.items():
        wanted = [run.wanted_steps for run in comparison.runs if run.environment == environment and run.wanted_steps]
        if wanted and step < max(wanted):
            sentences.append(
                f"{labels.environment(environment)} was scored at step {step:,} of {max(wanted):,}: "
                "the order may change."
            )
    return sentences


def _why(one: Entry, other: Entry, between: Difference) -> str:
    seeds = min(len(one.scores), len(other.scores))
    if seeds < ENOUGH_SEEDS:
        there = "there is only one seed" if seeds == 1 else f"there are only {seeds} seeds"
        return f"{there}, and it takes at least {ENOUGH_SEEDS}"
    return f"the 95% interval of the difference, {_range(between)}, holds 0"


def _amount(between: Difference) -> str:
    return _signed(between.value, between.in_percent)


def _range(between: Difference) -> str:
    if between.interval is None:
        return "unknown"
    low, high = between.interval
    return f"{_signed(low, between.in_percent)} to {_signed(high, between.in_percent)}"


def _signed(value: float, in_percent: bool) -> str:
    # A decimal near 0, so that an interval that holds 0 does not seem to end there.
    return f"{value:+.{0 if abs(value) >= 10 else 1}f}%" if in_percent else f"{value:+.3g}"


def number(value: float) -> str:
    """Three digits or so: 0.512, 52.1, 1234."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _error(entry: Entry) -> str:
    return f" ± {number(entry.standard_error)}" if np.isfinite(entry.standard_error) else ""
