"""The answer in words: which is best, by how much, with what confidence, and what was left out.

    95% interval of a difference of means a - b: Welch's

Two variants are separated if this interval excludes 0, and both have at least three runs. Otherwise the text says that
the data cannot tell. (A bootstrap of three or five runs would be overconfident: it is shown, but decides nothing.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actiongap.analysis import labels, statistics
from actiongap.analysis.comparison import ENOUGH_SEEDS, Aggregate, Comparison, Entry, Interval, Probability


class Difference(NamedTuple):
    """One variant against another on one environment: of mean scores, as scores or in % where `in_percent`.

    Without an interval where runs are too few for one."""

    value: float
    interval: Interval | None
    in_percent: bool
    certain: bool


def headline(comparison: Comparison) -> list[str]:
    """Sentences, the most important first."""
    environments = [name for name in comparison.environments if ranked(comparison, name)]
    if not environments:
        return ["No run is far enough to be scored yet.", *_left_out(comparison)]
    answers = [_environment(comparison, name) for name in environments]
    if len(environments) > 1:
        # The answer over all comes first, then one line for each environment; the reasons are in the tables.
        return _overall(comparison) + [sentences[0] for sentences in answers] + _left_out(comparison)
    return [sentence for sentences in answers for sentence in sentences] + _left_out(comparison)


def ranked(comparison: Comparison, environment: str) -> list[Entry]:
    """The scored variants on an environment, the highest mean score first."""
    entries = [
        entry
        for variant in comparison.variants
        if (entry := comparison.entries.get((environment, variant))) is not None and len(entry.scores)
    ]
    return sorted(entries, key=lambda entry: -entry.mean)


def best_of(comparison: Comparison, environment: str) -> str | None:
    """The variant that is separated from all others on an environment, if one is: what a table shows in bold."""
    ranking = ranked(comparison, environment)
    if len(ranking) < 2 or not all(difference(ranking[0], other).certain for other in ranking[1:]):
        return None
    return ranking[0].variant


def best_overall(comparison: Comparison) -> str | None:
    """The variant whose interval over all environments lies above every other's, if one does."""
    ranking = _ranked_overall(comparison)
    if len(ranking) < 2 or any(_overlap(ranking[0], other) for other in ranking[1:]):
        return None
    return ranking[0].variant


def difference(one: Entry, other: Entry, baseline: Entry | None = None, random: float | None = None) -> Difference:
    """How much better `one` is than `other`. In % of the baseline's distance from random play, where that is known."""
    unit = abs(baseline.mean - random) if baseline is not None and random is not None else 0.0
    scale = 100 / unit if unit else 1.0
    value = scale * (one.mean - other.mean)
    if min(len(one.scores), len(other.scores)) < ENOUGH_SEEDS:
        return Difference(value, None, bool(unit), False)
    low, high = (scale * float(bound) for bound in statistics.welch(one.scores, other.scores))
    return Difference(value, (low, high), bool(unit), low > 0 or high < 0)


def _environment(comparison: Comparison, environment: str) -> list[str]:
    best, *others = ranked(comparison, environment)
    place, name = labels.environment(environment), labels.variant(best.variant)
    if not others:
        return [f"Only {name} was scored on {place}: {number(best.mean)}{_error(best)}. There is nothing to compare."]
    baseline = comparison.entries.get((environment, comparison.baseline or ""))
    if baseline is not None and not len(baseline.scores):
        baseline = None
    random = comparison.random.get(environment)
    # What the best is compared with: the baseline, or, if there is none or it is the best itself, the second.
    rival = baseline if baseline is not None and best is not baseline else others[0]
    against = difference(best, rival, baseline, random)
    means = f"{number(best.mean)} against {labels.variant(rival.variant)}'s {number(rival.mean)}"
    gain = f"{_amount(against)} (95% interval {_range(against)})"
    open_ones = [each for each in others if not difference(best, each, baseline, random).certain]
    role = ", the baseline," if best is baseline else ""
    if not against.certain and number(best.mean) == number(rival.mean):
        sentences = [f"{name} and {labels.variant(rival.variant)} have the same mean on {place}, {number(best.mean)}."]
    elif not against.certain:
        sentences = [
            f"{name}{role} has the highest mean on {place}, {means}, {_amount(against)}, "
            f"but the data cannot tell the two apart: {_why(best, rival, against)}."
        ]
    elif open_ones:
        sentences = [
            f"{name}{role} beats {labels.variant(rival.variant)} on {place}: {means}, {gain}; "
            f"whether it beats {_names(open_ones)} too, the data cannot tell."
        ]
    elif best is baseline:
        sentences = [f"No variant beats {name}, the baseline, on {place}: {means}, {gain}."]
    else:
        sentences = [f"{name} is best on {place}: {means}, {gain}."]
    if baseline is None:
        sentences.append("There is no scored baseline.")
    elif best is not baseline and best.probability_of_improvement is not None:
        sentences += _how_sure(best, baseline, best.probability_of_improvement)
    if rival is not others[0]:
        sentences.append(_runner_up(best, others[0], baseline, random))
    return sentences


def _how_sure(best: Entry, baseline: Entry, better: Probability) -> list[str]:
    if better.interval is None:
        return []
    low, high = better.interval
    interval = f"95% interval {100 * low:.0f} to {100 * high:.0f}%; " if low < high else ""
    return [
        f"How sure: a run of {labels.variant(best.variant)} beat one of {labels.variant(baseline.variant)} in "
        f"{100 * better.share:.0f}% of {len(best.scores) * len(baseline.scores)} pairs ({interval}50% would be a draw)."
    ]


def _runner_up(best: Entry, second: Entry, baseline: Entry | None, random: float | None) -> str:
    between = difference(best, second, baseline, random)
    name, best_name = labels.variant(second.variant), labels.variant(best.variant)
    if between.certain:
        return f"{name} is second with {number(second.mean)}, {_amount(between).lstrip('+')} behind {best_name}."
    return (
        f"The data cannot tell {best_name} from {name}, which is second with {number(second.mean)}: "
        f"{_why(best, second, between)}."
    )


def _ranked_overall(comparison: Comparison) -> list[Aggregate]:
    """The variants that were scored on as many environments as any, the highest interquartile mean first."""
    most = max((len(aggregate.environments) for aggregate in comparison.aggregates.values()), default=0)
    full = [aggregate for aggregate in comparison.aggregates.values() if len(aggregate.environments) == most > 1]
    return sorted(full, key=lambda aggregate: -aggregate.interquartile_mean)


def _overlap(best: Aggregate, other: Aggregate) -> bool:
    """Whether the data cannot tell them apart; also where there are too few runs for an interval."""
    return best.interval is None or other.interval is None or other.interval[1] >= best.interval[0]


def _overall(comparison: Comparison) -> list[str]:
    """Over all environments."""
    ranking = _ranked_overall(comparison)
    if not ranking:
        return ["No aggregate over the environments: the scores of a random policy on them are not known."]
    best, *others = ranking
    name, most = labels.variant(best.variant), len(best.environments)
    baseline = next((each for each in others if each.variant == comparison.baseline), None)
    mean = f"interquartile mean of normalised scores {best.interquartile_mean:.2f}{_interval(best.interval)}"
    rival = baseline or (others[0] if others else None)
    if rival is None:
        return [f"Over {most} environments only {name} was scored: {mean}."]
    means = f"{mean} against {labels.variant(rival.variant)}'s {rival.interquartile_mean:.2f}"
    gain = f"mean improvement {best.mean_improvement:+.0f}%, " if best.variant != comparison.baseline else ""
    close = [each for each in others if _overlap(best, each)]
    if rival in close:
        few = best.interval is None or rival.interval is None
        why = f"there are fewer than {ENOUGH_SEEDS} seeds" if few else "the intervals overlap"
        first = f"{name} has the highest mean: {gain}{means}, but the data cannot tell the two apart: {why}"
    elif best.variant == comparison.baseline:
        first = f"no variant beats {name}, the baseline: {means}"
    else:
        verb = f"beats {labels.variant(rival.variant)}" if close else "is best"
        first = f"{name} {verb}: {gain}{means}"
    sentences = [f"Over {most} environments {first}."]
    better = best.probability_of_improvement
    if baseline is not None and better is not None and better.interval is not None:
        low, high = better.interval
        sentences.append(
            f"How sure: a run of {name} beat one of {labels.variant(baseline.variant)} on the same environment in "
            f"{100 * better.share:.0f}% of all pairs (95% interval {100 * low:.0f} to {100 * high:.0f}%)."
        )
    if close and rival not in close:
        sentences.append(f"Its interval overlaps with that of {_names(close)}: the data cannot tell which is best.")
    full = {each.variant for each in ranking}
    missing = [labels.variant(variant) for variant in comparison.variants if variant not in full]
    if missing:
        sentences.append(f"Not compared over all environments, since scores on some are missing: {', '.join(missing)}.")
    return sentences


def _left_out(comparison: Comparison) -> list[str]:
    """What the numbers do not hold: runs that failed, are under way, or were not made."""
    scored = {(entry.environment, entry.variant, seed) for entry in comparison.entries.values() for seed in entry.seeds}
    out = [run for run in comparison.runs if (run.environment, run.variant, run.seed) not in scored]
    sentences = []
    if out:
        counts = Counter("too short" if run.status == "finished" else run.status for run in out)
        kinds = ", ".join(f"{count} {status}" for status, count in counts.items())
        verb = "is" if len(out) == 1 else "are"
        sentences.append(f"{len(out)} of {len(comparison.runs)} runs {verb} left out of the scores: {kinds}.")
    for environment, step in comparison.scored_at.items():
        wanted = [run.wanted_steps for run in comparison.runs if run.environment == environment and run.wanted_steps]
        if wanted and step < max(wanted):
            sentences.append(
                f"{labels.environment(environment)} was scored at step {step:,} of {max(wanted):,}: "
                "the order may change."
            )
    return sentences


def _names(each: Sequence[Entry | Aggregate]) -> str:
    return ", ".join(labels.variant(one.variant) for one in each)


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" (95% interval {interval[0]:.2f} to {interval[1]:.2f})"


def _why(one: Entry, other: Entry, between: Difference) -> str:
    seeds = min(len(one.scores), len(other.scores))
    if seeds < ENOUGH_SEEDS:
        there = "there is only one seed" if seeds == 1 else f"there are only {seeds} seeds"
        return f"{there}, and it takes at least {ENOUGH_SEEDS}"
    return f"the 95% interval of the difference, {_range(between)}, contains 0"


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
