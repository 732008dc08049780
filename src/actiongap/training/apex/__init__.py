"""Ape-X (Horgan et al. 2018) on Ray: many actors, a sharded replay, and the project's one learner."""
