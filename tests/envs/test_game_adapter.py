"""A JAX game as an environment: the same game, with its true ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from actiongap import envs

from ..training.tiny_game import CORRIDOR


def test_every_step_obeys_the_game() -> None:
    vector = envs.make(CORRIDOR).vector(4, 3)
    observation = vector.reset()
    ends, cuts, starts = 0, 0, set()
    for choice in np.random.default_rng(0).integers(0, 2, (400, 4)):
        moved = vector.step(choice)
        here, there = observation.argmax(1), moved.next_observation.argmax(1)
        assert np.array_equal(there, np.clip(here + np.where(choice == 1, 1, -1), 0, 4))
        assert np.array_equal(moved.terminated, there == 4)
        assert np.array_equal(moved.reward, (there == 4).astype(np.float32))
        over = moved.terminated | moved.truncated
        assert np.array_equal(moved.observation[~over], moved.next_observation[~over])
        starts |= set(moved.observation[over].argmax(1).tolist())
        ends, cuts = ends + int(moved.terminated.sum()), cuts + int(moved.truncated.sum())
        assert moved.valid.all()
        observation = moved.observation
    assert ends > 50
    assert cuts > 5
    assert starts == {0, 1, 2, 3}


def test_copies_and_seeds_have_chance_of_their_own() -> None:
    environment = envs.make("minatar/space_invaders")
    chosen = np.random.default_rng(0).integers(0, 6, 200)

    def frames(seed: int) -> np.ndarray:
        vector = environment.vector(3, seed)
        vector.reset()
        return np.stack([vector.step(np.full(3, action)).observation for action in chosen])

    first, again, other = frames(0), frames(0), frames(2**40)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[:, 0], first[:, 1])


def test_a_picture_is_of_the_first_copy() -> None:
    environment = envs.make("pixelcopter")
    vector = environment.vector(2, 0)
    vector.reset()
    picture = vector.render()
    assert picture is not None
    game = environment.game  # type: ignore[attr-defined]
    inner = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], vector._state.game)  # type: ignore[attr-defined]
    assert np.array_equal(picture, game.render(inner))
