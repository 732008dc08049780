"""The ranking of rules on the command line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from actiongap.cli.tables import print_table, say

if TYPE_CHECKING:
    from actiongap.experiments.ranking.plan import Plan
    from actiongap.experiments.suites import Suite


def reproduce(suite: Suite, seeds: int | None, folder: Path, dry_run: bool, quiet: bool) -> None:
    """Run a suite of this kind."""
    from actiongap.experiments.ranking.plan import Plan, settings

    plan = Plan(**{**suite.arguments, **({} if seeds is None else {"seeds": seeds})})
    count = len(settings(plan)) * len(plan.data)
    say(f"{suite.title}: {count} settings x {plan.seeds} seeds, a few minutes")
    if not dry_run:
        _show(plan, folder, progress=not quiet)


def _show(plan: Plan, folder: Path, progress: bool) -> None:
    """Measure what is missing in the folder, print a table for each kind of data, and write the files."""
    from actiongap.experiments.ranking import files, study

    found = study.run(plan, folder, progress)
    for kind, of in found.losses.items():
        table = Table(title=f"{kind}: loss / loss of the best fixed c, {len(of)} settings", title_justify="left")
        table.add_column("rule", overflow="fold")
        table.add_column("worst", justify="right")
        table.add_column("mean", justify="right")
        table.add_column("worst in", overflow="fold")
        for each in study.ranked(of):
            table.add_row(each.rule, f"{each.worst:.2f}", f"{each.mean:.2f}", each.worst_setting)
        print_table(table)
        counts = Counter(study.best_fixed(of).values()).most_common()
        say(f"best among the fixed: {', '.join(f'{rule} in {count}' for rule, count in counts)}")
    for path in files.write(found, folder):
        say(f"{path.suffix[1:].upper()}: {path}")
