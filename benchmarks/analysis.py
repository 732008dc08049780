"""Reading and reporting many runs: `analysis.load` on 1,000 runs, and a whole report on 150, from folders written here.

Both clocks are told: wall-clock time, which other work on the machine makes longer, and the process's own time.
The animation of the best agent is left out: it is training's code that plays.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from actiongap import operators
from actiongap.analysis import load, report
from actiongap.analysis.comparison import compare
from actiongap.training.run_folder import to_json

ALGORITHMS = ("dqn", "soft_dqn", "al", "clip_al", "mdqn")
ENVIRONMENTS = ("pixelcopter", *(f"minatar/{game}" for game in ("asterix", "breakout", "freeway", "seaquest")))
COLUMNS = (
    *("evaluation_return", "evaluation_return_std", "evaluation_length", "evaluation_cut", "training_return"),
    *("training_episodes", "epsilon", "loss", "value", "action_gap", "q_taken", "kept", "agreement"),
)


def write_runs(folder: Path, runs: int, evaluations: int) -> None:
    """So many runs, spread over environments and algorithms, with noise for numbers."""
    generator = np.random.default_rng(0)
    settings = {f"setting_{number}": number for number in range(30)}
    for number in range(runs):
        seed, place = divmod(number, len(ENVIRONMENTS) * len(ALGORITHMS))
        environment, algorithm = ENVIRONMENTS[place // len(ALGORITHMS)], ALGORITHMS[place % len(ALGORITHMS)]
        path = folder / f"{number}"
        path.mkdir(parents=True)
        identity = {"environment": environment, "game": environment, "algorithm": algorithm, "seed": seed}
        operator = to_json(operators.make(algorithm)._asdict())
        (path / "settings.json").write_text(json.dumps({**identity, "operator": operator, "settings": settings}))
        (path / "status.json").write_text(json.dumps({"state": "finished", "step": 5000 * (evaluations - 1)}))
        values = np.cumsum(generator.normal(0.1, 1.0, (evaluations, len(COLUMNS))), axis=0)
        table = np.column_stack([5000 * np.arange(evaluations), values])
        header = ",".join(["step", *COLUMNS])
        formats = ["%d", *["%.8g"] * len(COLUMNS)]
        np.savetxt(path / "metrics.csv", table, formats, delimiter=",", header=header, comments="")


def compare_and_report(runs: Path, out: Path) -> None:
    report.write(compare(runs), out, gif=False)


def seconds(function: Callable[..., Any], *arguments: Any) -> dict[str, float]:
    wall, own = time.perf_counter(), time.process_time()
    function(*arguments)
    return {"wall_s": time.perf_counter() - wall, "process_s": time.process_time() - own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="write the figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        many, few = Path(temporary) / "many", Path(temporary) / "few"
        write_runs(many, 1000, 400)
        write_runs(few, 150, 1000)
        seconds(load, many / "0")  # Imports are not what is measured.
        loads = [seconds(load, many) for _ in range(arguments.rounds)]
        whole, pages = [], []
        for number in range(arguments.rounds):
            out = Path(temporary) / f"report-{number}"
            whole.append(seconds(compare_and_report, few, out))
            pages.append((out / "index.html").stat().st_size)
    results: dict[str, Any] = {
        "load_1000_runs_of_400_rows": {key: float(np.median([each[key] for each in loads])) for key in loads[0]},
        "report_on_150_runs_of_1000_rows": {key: float(np.median([each[key] for each in whole])) for key in whole[0]},
        "page_bytes": pages[0],
    }
    for name, value in results.items():
        print(name, value if isinstance(value, int) else {key: round(number, 2) for key, number in value.items()})
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
