"""What holds for every game, whatever its rules."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap import games
from actiongap.games.core import Game, GameState, chance

every_game = pytest.mark.parametrize("name", games.names())

LIMIT, COUNT = 25, 8


def variant(name: str, *, sticky: float, minimal_actions: bool, time_limit: int | None) -> Game:
    return Game(name, games.make(name).rules, sticky, minimal_actions, time_limit)


@cache
def usual(name: str) -> Game:
    return variant(name, sticky=0.25, minimal_actions=False, time_limit=LIMIT)


@cache
def compiled(game: Game) -> tuple[Any, Any]:
    return jax.jit(game.reset), jax.jit(game.step)


@cache
def play(name: str, seed: int) -> tuple[list[GameState], list[tuple], list[tuple]]:
    """Eight games at once, under random actions, on through the ends of episodes.

    Gives their states (one more than the rest), their steps' keys and actions, and what came of them.
    """
    game = usual(name)
    start_key, key = jax.random.split(jax.random.key(seed))
    reset, step = compiled_many(game)
    state, observation = reset(jax.random.split(start_key, COUNT))
    states, inputs, outcomes = [state], [], [(observation,)]
    for step_key in jax.random.split(key, 80):
        keys = jax.random.split(step_key, COUNT)
        actions = jax.random.randint(step_key, (COUNT,), 0, game.num_actions)
        state, *outcome = step(keys, state, actions)
        states.append(state)
        inputs.append((keys, actions))
        outcomes.append(tuple(outcome))
    return jax.device_get(states), inputs, jax.device_get(outcomes)


@cache
def compiled_many(game: Game) -> tuple[Any, Any]:
    return jax.jit(jax.vmap(game.reset)), jax.jit(jax.vmap(game.step))


def one_of(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def assert_equal(first: Any, second: Any) -> None:
    # Floats may differ in the last bit: compilers fuse a multiplication and an addition, or do not.
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5), first, second)


def differ(first: Any, second: Any) -> bool:
    return not all(jax.tree.leaves(jax.tree.map(np.array_equal, first, second)))


@every_game
def test_shapes_and_types_are_as_the_game_says_and_stay_so(name: str) -> None:
    game = games.make(name)
    key = jax.random.key(0)
    state, observation = jax.eval_shape(game.reset, key)
    next_state, next_observation, reward, terminated, truncated = jax.eval_shape(game.step, key, state, jnp.int32(0))
    for seen in (observation, next_observation):
        assert (seen.shape, seen.dtype) == (game.observation_shape, np.dtype(game.observation_dtype))
    for scalar, dtype in ((reward, np.float32), (terminated, np.bool_), (truncated, np.bool_)):
        assert (scalar.shape, scalar.dtype) == ((), dtype)
    # Weak types too, or a step is traced twice, and a scan's carry changes.
    before, after = (
        [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)] for tree in (state, next_state)
    )
    assert before == after
    assert jax.tree.structure(state) == jax.tree.structure(next_state)  # type: ignore[operator]
    assert len(set(game.action_names)) == game.num_actions == len(game.action_names)


@every_game
def test_nothing_is_traced_again_on_a_second_call(name: str) -> None:
    play(name, 1)
    play(name, 2)
    reset, step = compiled_many(usual(name))
    assert (reset._cache_size(), step._cache_size()) == (1, 1)


@every_game
def test_many_at_once_are_the_same_as_one_by_one(name: str) -> None:
    states, inputs, outcomes = play(name, 1)
    _, step = compiled(usual(name))
    for moment in range(0, len(inputs), 8):
        for index in range(COUNT):
            key, action = one_of(inputs[moment], index)
            state, *outcome = step(key, one_of(states[moment], index), action)
            assert_equal(state, one_of(states[moment + 1], index))
            assert_equal(tuple(outcome), one_of(outcomes[moment + 1], index))


@every_game
def test_a_key_decides_the_game(name: str) -> None:
    *_, outcomes = play(name, 1)
    assert_equal(outcomes, play.__wrapped__(name, 1)[2])
    assert differ(outcomes, play(name, 2)[2])
    # The eight games have keys of their own, and so their own ways.
    observations = np.stack([outcome[0] for outcome in outcomes], axis=1)
    for one, other in pairwise(observations):
        assert differ(one, other)


@every_game
def test_a_time_limit_truncates_at_its_step_and_no_other(name: str) -> None:
    states, inputs, outcomes = play(name, 1)
    np.testing.assert_array_equal(states[-1].steps, len(inputs))
    _, step = compiled(usual(name))
    quiet = next(moment for moment, outcome in enumerate(outcomes[1:]) if not outcome[2].any())
    key, action = one_of(inputs[quiet], 0)
    state = one_of(states[quiet], 0)
    for steps, expected in ((LIMIT - 2, False), (LIMIT - 1, True)):
        *_, terminated, truncated = step(key, state._replace(steps=jnp.int32(steps)), action)
        assert (bool(terminated), bool(truncated)) == (False, expected)


@every_game
def test_an_end_at_the_time_limit_is_an_end_and_no_truncation(name: str) -> None:
    states, inputs, outcomes = play(name, 1)
    ends = [(moment, game) for moment, outcome in enumerate(outcomes[1:]) for game in np.flatnonzero(outcome[2])]
    if not ends:
        assert name == "minatar/freeway"  # The one game that no play ends.
        return
    moment, index = ends[0]
    key, action = one_of(inputs[moment], index)
    state = one_of(states[moment], index)._replace(steps=jnp.int32(LIMIT - 1))
    *_, terminated, truncated = compiled(usual(name))[1](key, state, action)
    assert (bool(terminated), bool(truncated)) == (True, False)


@every_game
def test_an_action_out_of_range_is_clamped(name: str) -> None:
    game = usual(name)
    _, step = compiled(game)
    state, key = one_of(play(name, 1)[0][0], 0), jax.random.key(1)
    for beyond, nearest in ((-7, 0), (game.num_actions, game.num_actions - 1), (99, game.num_actions - 1)):
        assert_equal(step(key, state, jnp.int32(beyond)), step(key, state, jnp.int32(nearest)))


@every_game
def test_minimal_actions_sticky_actions_and_no_time_limit(name: str) -> None:
    full = usual(name)
    free = variant(name, sticky=0.0, minimal_actions=True, time_limit=None)
    stuck = variant(name, sticky=1.0, minimal_actions=True, time_limit=None)
    assert free.num_actions == len(full.rules.minimal_actions) <= full.num_actions
    state = one_of(play(name, 1)[0][3], 0)._replace(steps=jnp.int32(1_000_000))
    key = next(key for key in map(jax.random.key, range(100)) if not full.draw(key).repeat)
    for number, action in enumerate(free.action_names):
        in_full_set = jnp.int32(full.action_names.index(action))
        *outcome, truncated = compiled(free)[1](key, state, jnp.int32(number))
        *expected, truncated_by_limit = compiled(full)[1](key, state, in_full_set)
        assert_equal(outcome, expected)
        assert (bool(truncated), bool(truncated_by_limit | expected[-1])) == (False, True)
        assert outcome[0].last_action == in_full_set
        # Whatever is chosen, a sticky step repeats the action that was taken last.
        repeated = compiled(stuck)[1](key, state._replace(last_action=in_full_set), jnp.int32(0))
        assert_equal(repeated, (*outcome, truncated))


@every_game
def test_a_picture_shows_something(name: str) -> None:
    game = usual(name)
    states, *_ = play(name, 1)
    pictures = [game.render(one_of(states[moment], 0)) for moment in (0, -1)]
    for picture in pictures:
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3
        assert min(picture.shape[:2]) >= 240
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) >= 3
    assert not np.array_equal(*pictures)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("breakout", "minatar/breakout"),
        ("minatar/spaceinvaders", "minatar/space_invaders"),
        ("pixelcopt", "pixelcopter"),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(wrong: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"no game is called '{wrong}'; near: [^.]*{meant}"):
        games.make(wrong)


@every_game
def test_a_setting_out_of_range_is_refused_with_the_range(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1 step, or None"):
        games.make(name, time_limit=0)
    with pytest.raises(ValueError, match=f"{name} has no option 'colour'; it has: sticky, minimal_actions, time_limit"):
        games.make(name, colour="red")


@every_game
def test_a_step_repeats_the_last_action_as_often_as_it_should(name: str) -> None:
    keys = jax.random.split(jax.random.key(3), 4000)
    for sticky in (0.1, 0.25):
        game = variant(name, sticky=sticky, minimal_actions=False, time_limit=None)
        repeats = jax.vmap(lambda key, game=game: game.draw(key).repeat)(keys)
        # Four standard errors at most: .1 is neither .08 nor .12, and .25 neither .22 nor .28.
        assert abs(float(jnp.mean(repeats)) - sticky) < 4 * np.sqrt(sticky * (1 - sticky) / len(keys))


def test_a_chance_is_its_share_of_all_words() -> None:
    words = jnp.array([0, 2**30 - 1, 2**30, 2**32 - 1], jnp.uint32)
    assert chance(words, 0.25).tolist() == [True, True, False, False]
    assert chance(words, 0.0).tolist() == [False] * 4
    assert chance(words, 1.0).tolist() == [True] * 4


@pytest.mark.parametrize("sticky", [-0.1, 1.5, float("nan")])
def test_a_sticky_chance_is_a_chance(sticky: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        games.make("minatar/breakout", sticky=sticky)
