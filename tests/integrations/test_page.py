"""The lines that docs/integrations.md shows for a CleanRL-style loop and for Stable-Baselines3."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from actiongap import operators

torch = pytest.importorskip("torch")

BLOCKS = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "integrations.md").read_text("utf-8"), re.DOTALL
)


def test_the_cleanrl_lines_make_the_target() -> None:
    (lines,) = [block for block in BLOCKS if "td_target" in block]
    data = SimpleNamespace(
        observations=torch.tensor([[10.0, 9.0], [10.0, 1.0]]),
        next_observations=torch.tensor([[3.0, 4.0], [5.0, 2.0]]),
        actions=torch.tensor([[1], [1]]),
        rewards=torch.tensor([[1.0], [2.0]]),
        dones=torch.tensor([[0.0], [1.0]]),
    )
    names = {"operators": operators, "torch": torch, "data": data, "target_network": lambda rows: rows}
    exec(lines, {**names, "args": SimpleNamespace(gamma=0.5)}, names)
    # The first is near the best and loses .9 of its gap; the second is far below it, and has terminated.
    torch.testing.assert_close(names["td_target"], torch.tensor([1 + 0.5 * 4 - 0.9, 2.0]))


def test_the_bound_of_mountain_car_is_the_one_told() -> None:
    (lines,) = [block for block in BLOCKS if "reward_min" in block]
    names = {"operators": operators}
    exec(lines.splitlines()[0], {}, names)
    assert f"# {names['bound']:.1f}," in lines
