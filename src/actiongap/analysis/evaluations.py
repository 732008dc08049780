"""Every evaluation of some runs as one tidy table.

All files with the same header are parsed at once: a call of the parser for each would take longer than the reading.
If that fails, each file is parsed alone, so that the broken one is named and the others are read.
"""

from __future__ import annotations

import io
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from actiongap.analysis.runs import MISSING, UNREADABLE, Folders, Run, as_number, find
from actiongap.operators import Operator
from actiongap.training import tables
from actiongap.training.files import FileError
from actiongap.training.metrics import BY_COLUMN

if TYPE_CHECKING:
    import pandas

NEEDED = ("step", "evaluation_return")


class Evaluations(NamedTuple):
    """The table, and what is wrong with the files of some runs, which are not in it."""

    table: pandas.DataFrame
    problems: Mapping[Run, str]


class _Part(NamedTuple):
    run: Run
    body: bytes
    rows: int


def load(*folders: Folders) -> pandas.DataFrame:
    """A row per evaluation of every readable run: the columns of metrics.csv, after those that identify the run.

    These are run (the folder), environment, algorithm, variant, seed, status, and the operator's numbers.
    """
    return read(find(*folders)).table


def read(runs: Iterable[Run]) -> Evaluations:
    """The evaluations of those runs that can be read."""
    import pandas

    by_header: dict[bytes, list[_Part]] = defaultdict(list)
    problems: dict[Run, str] = {}
    for run in runs:
        if run.status in (UNREADABLE, MISSING):
            continue
        try:
            raw = tables.read_raw(run.path / "metrics.csv")
        except FileError as error:
            problems[run] = str(error)
            continue
        if raw.body:
            by_header[raw.header].append(_Part(run, raw.body, raw.rows))
    found = []
    for header, parts in by_header.items():
        metrics = _parse(header, parts)
        if metrics is None:
            problems |= {part.run: problem for part in parts if (problem := _problem_of(header, part))}
            parts = [part for part in parts if part.run not in problems]
            metrics = _parse(header, parts) if parts else None
        if metrics is not None:
            found.append(pandas.concat([_run_columns(parts), metrics], axis=1))
    return Evaluations(
        pandas.concat(found, ignore_index=True) if found else pandas.DataFrame(columns=["run", *NEEDED]), problems
    )


def _parse(header: bytes, parts: Sequence[_Part]) -> pandas.DataFrame | None:
    """The rows of all parts, or None where some are not what a run writes."""
    import numpy as np
    import pandas

    commas = header.count(b",")
    if any(part.body.count(b",") != part.rows * commas for part in parts):
        return None
    try:
        metrics = pandas.read_csv(
            io.BytesIO(header + b"".join(part.body for part in parts)), keep_default_na=False, na_values=["", "nan"]
        )
    except (ValueError, OverflowError):  # pandas' own errors, and text that is not UTF-8
        return None
    rows = [part.rows for part in parts]
    if len(metrics) != sum(rows) or any(name not in metrics for name in NEEDED):
        return None
    if any(kind.kind not in "if" for kind in metrics.dtypes) or metrics["step"].dtype.kind != "i":
        return None
    rising = np.diff(metrics["step"].to_numpy()) > 0
    rising[np.cumsum(rows)[:-1] - 1] = True  # from the last row of one run to the first of the next
    return metrics if rising.all() and (metrics["step"] >= 0).all() else None


def _problem_of(header: bytes, part: _Part) -> str | None:
    """What is wrong with one file, with its line; None if nothing is."""
    if _parse(header, [part]) is not None:
        return None
    path = part.run.path / "metrics.csv"
    try:
        rows = tables.read(path)
    except FileError as error:
        return str(error)
    missing = [name for name in NEEDED if rows and name not in rows[0]]
    if missing:
        return f"{path}, line 1: the header has no column `{missing[0]}`"
    for line, (row, following) in enumerate(itertools.pairwise(rows), start=3):
        if following["step"] <= row["step"]:
            return f"{path}, line {line}: step {following['step']} follows step {row['step']}"
    return f"{path}: it is not a table of numbers"


def _run_columns(parts: Sequence[_Part]) -> pandas.DataFrame:
    """The columns of each run, repeated for each of its rows; texts as categories."""
    import numpy as np
    import pandas

    runs = [part.run for part in parts]
    operators = [run.settings.get("operator", {}) for run in runs]
    own = {name for run in runs if run.settings.get("operator_functions") for name in run.settings.get("operator", {})}
    known = {*Operator._fields, *own} - BY_COLUMN.keys()
    names = dict.fromkeys(name for operator in operators for name in operator if name in known)
    facts: dict[str, Sequence[Any]] = {
        "run": [str(run.path) for run in runs],
        **{
            key: [getattr(run, key) for run in runs]
            for key in ("environment", "algorithm", "variant", "seed", "status")
        },
        **{name: [as_number(operator.get(name)) for operator in operators] for name in names},
    }
    repeated = np.repeat(np.arange(len(parts)), [part.rows for part in parts])
    columns = {}
    for key, values in facts.items():
        if isinstance(values[0], str):
            codes, categories = pandas.factorize(np.asarray(values, dtype=object))
            columns[key] = pandas.Categorical.from_codes(codes[repeated], categories)
        else:
            columns[key] = np.asarray(values)[repeated]
    return pandas.DataFrame(columns)
