"""What the docs show runs as it stands."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

from actiongap import operators

DOCS = Path(__file__).parents[1] / "docs"


def test_the_game_of_ones_own_is_learned():
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "your-own-game.md").read_text(), re.DOTALL)
    names = {"__name__": "example"}
    with contextlib.redirect_stderr(io.StringIO()) as told:
        exec(compile(code, "your-own-game.md", "exec"), names)
    # The corridor is walked to its end by each greedy episode.
    np.testing.assert_array_equal(names["agent"].evaluate(episodes=10).returns, np.ones(10))
    assert "lower_bound = 0" in told.getvalue()


def test_every_operator_has_its_row():
    text = (DOCS / "operators.md").read_text()
    assert [name for name in operators.names() if f"| `{name}` |" not in text] == []
