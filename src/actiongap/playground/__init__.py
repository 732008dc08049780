"""The playground: a page where operators run side by side on an MDP of your choice."""

from actiongap.playground.page import PANELS, START, chain_walk_state, render, write
