"""Python imports this by itself, where its folder is on the path: so the workers of a comparison can be killed, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import points

points.arm_by_plan()
sys.path.pop(0)
