"""The playground: one page on which operators run side by side on an MDP of one's choice."""

from actiongap.playground.page import PANELS, START, chain_walk_state, render, write
