"""Steps the original MinAtar beside ours with the same draws, and compares all that can be seen of both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from minatar import Environment

from actiongap import games
from actiongap.games.core import Game, GameState


class ScriptedRandom:
    """Stands in for the original's random source: each method hands out what was scripted for it, in order.

    A test scripts a whole step; what the original does not ask for in that step is dropped at the next. A scripted
    function is called with the original's own arguments, and answers for them.
    """

    def __init__(self) -> None:
        self.script({})

    def script(self, answers: dict[str, Iterable[Any]]) -> None:
        self.answers = {method: deque(values) for method, values in answers.items()}

    def rand(self, *arguments: Any) -> Any:
        return self._answer("rand", *arguments)

    def choice(self, *arguments: Any, **options: Any) -> Any:
        return self._answer("choice", *arguments, **options)

    def randint(self, *arguments: Any, **options: Any) -> Any:
        return self._answer("randint", *arguments, **options)

    def _answer(self, method: str, *arguments: Any, **options: Any) -> Any:
        answer = self.answers[method].popleft()
        return answer(*arguments, **options) if callable(answer) else answer


class Packed:
    """A compiled function whose second result comes as one array, and is taken apart by NumPy.

    To fetch a state field by field takes longer than the step that made it.
    """

    def __init__(self, function: Callable[..., tuple[Any, Any]]) -> None:
        self._function, self._compiled = function, jax.jit(self._packed)
        self._structure: Any = None
        self._fields: list[tuple[slice, tuple[int, ...], np.dtype]] = []

    def _packed(self, *arguments: Any) -> tuple[Any, jax.Array]:
        first, second = self._function(*arguments)
        leaves, self._structure = jax.tree.flatten(second)
        ends = np.cumsum([leaf.size for leaf in leaves])
        self._fields = [
            (slice(int(end) - leaf.size, int(end)), leaf.shape, np.dtype(leaf.dtype))
            for end, leaf in zip(ends, leaves, strict=True)
        ]
        return first, jnp.concatenate([_words(leaf) for leaf in leaves])

    def __call__(self, *arguments: Any) -> tuple[Any, Any]:
        first, packed = self._compiled(*arguments)
        words = np.asarray(packed)
        fields = [
            (words[place].astype(bool) if dtype.kind == "b" else words[place].view(dtype)).reshape(shape)
            for place, shape, dtype in self._fields
        ]
        return first, jax.tree.unflatten(self._structure, fields)


def _words(leaf: jax.Array) -> jax.Array:
    """The bits of an array, a word of 32 for each entry."""
    wide = leaf.astype(jnp.int32) if leaf.dtype == bool else leaf
    return jax.lax.bitcast_convert_type(wide, jnp.int32).ravel()


class Rules:
    """What is compiled of a game, once for all tests of a module: its draws, its starts and its steps."""

    def __init__(self, game: Game) -> None:
        def start_draws(key: jax.Array) -> Any:
            return game.rules.start_draws(jax.random.bits(key, (game.rules.start_words,), np.uint32))

        def advance(state: GameState, action: Any, draws: Any) -> tuple[GameState, Any]:
            following, *told = game.advance(state, action, draws)
            return following, (following.inner, draws, *told)

        self.start_draws, self.reset, self.advance = jax.jit(start_draws), jax.jit(game.reset), Packed(advance)
        self.step = Packed(lambda state, action, key: advance(state, action, game.draw(key)))


rules_of = cache(Rules)


class Lockstep:
    """One of our games and its original, side by side.

    `start_answers(start_draws)` and `step_answers(step_draws)` turn our draws (the rules' own, as NumPy) into what the
    original's random source is asked for: {"choice": [...], "randint": [...], "rand": [...]}. The draw of the sticky
    action, which is the first `rand` of a step, is scripted here.
    """

    def __init__(self, game: Game, start_answers: Callable[[Any], dict], step_answers: Callable[[Any], dict]) -> None:
        self.game = game
        self.start_answers, self.step_answers = start_answers, step_answers
        self.random = ScriptedRandom()
        self.original = Environment(game.name.removeprefix("minatar/"), difficulty_ramping=game.rules.ramping)  # type: ignore[attr-defined]
        self.original.random = self.original.env.random = self.random
        self.rules = rules_of(game)
        self.state: GameState
        self.inner: Any
        """The rules' own state after a step, as NumPy."""

    def reset(self, key: jax.Array) -> np.ndarray:
        self.random.script(self.start_answers(jax.device_get(self.rules.start_draws(key))))
        self.original.reset()
        self.state, observation = self.rules.reset(key, self.original.last_action)
        np.testing.assert_array_equal(observation, self.original.state())
        return np.asarray(observation)

    def advance(self, key: Any, action: int) -> tuple[GameState, Any]:
        """Our step: the state, and as NumPy what is inside of it, the draws, and all that a step tells."""
        return self.rules.step(self.state, action, key)

    def step(self, key: Any, action: int) -> tuple[np.ndarray, float, bool]:
        self.state, (self.inner, draws, observation, our_reward, terminated, truncated) = self.advance(key, action)
        answers = self.step_answers(draws.inner)
        # Below or above any chance of a sticky action: the decision is ours, the original carries it out.
        answers["rand"] = [0.0 if draws.repeat else 1.0, *answers.get("rand", [])]
        self.random.script(answers)
        # The original numbers its actions in the full set, whichever of them ours offers.
        reward, done = self.original.act(self.game.rules.action_names.index(self.game.action_names[action]))
        assert_same(observation, self.original.state())
        assert float(our_reward) == reward
        assert bool(terminated | truncated) == done
        return observation, float(reward), bool(done)


def assert_same(ours: Any, theirs: Any) -> None:
    """As NumPy's own, which takes its time, where they differ: most of a test is comparisons."""
    if not np.array_equal(ours, theirs):
        np.testing.assert_array_equal(ours, theirs)


def assert_minimal_actions_equal(
    name: str, start_answers: Callable[[Any], dict], step_answers: Callable[[Any], dict]
) -> None:
    """The smaller set, numbered from 0, does what the original does with the actions that it lists."""
    game, full_game = games.make(f"minatar/{name}", minimal_actions=True), games.make(f"minatar/{name}")
    lockstep = Lockstep(full_game, start_answers, step_answers)
    assert list(game.rules.minimal_actions) == lockstep.original.minimal_action_set()
    draw, advance = jax.jit(game.draw), jax.jit(game.advance)
    random = np.random.default_rng(0)
    lockstep.reset(jax.random.PRNGKey(0))
    for key in np.asarray(jax.random.split(jax.random.PRNGKey(1), 1_000)):
        state, action = lockstep.state, int(random.integers(game.num_actions))
        _, reward, done = lockstep.step(key, game.rules.minimal_actions[action])
        next_state, _, our_reward, terminated, _ = advance(state, action, draw(key))
        jax.tree.map(assert_same, *jax.device_get((next_state, lockstep.state)))
        assert (float(our_reward), bool(terminated)) == (reward, done)
        if done:
            lockstep.reset(key)
