"""The colours of every figure and page: apart from what draws, which takes a second to import."""

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5566", "#997700", "#555555")
"""Paul Tol's bright set and a few more, told apart by colour-blind readers too."""
