"""Learning: settings, networks, replay, exploration and the learner, which holds the project's only gradient step."""
