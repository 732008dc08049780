r"""The operators: one formula with a few numbers serves every algorithm of the family.

For a row `q = Q(s, .)` of A actions and the next row `q' = Q(s', .)`:

    value      v(q)    = max q + tau (log sum exp((q - max q) / tau) - mellow log A)        just max q at tau = 0
    gap term   g(q)_a  = alpha max(q_a - v(q), floor)     kept only where  q_a - Q_l >= c (max q - Q_l), else 0
    target     y       = r + discount v(q') + g(q)_a      persistent: the larger of y and r + discount q'_a

In the paper's letters (Zhang, Gan & Tan, AAAI 2022): `alpha` is alpha, `clip_ratio` is c and `lower_bound` is Q_l in
eq. 4 and 5 (clipped AL) and eq. 29 (clipped MDQN), `temperature` is tau and `floor` is l_0 in eq. 28 (Munchausen DQN),
`persistent` is the maximum of eq. 26 and 27 (persistent AL). `mellow = 1` puts the mean in place of the sum inside the
logarithm, which makes the soft maximum of Conservative Value Iteration, mellowmax.

An `Operator` is data, not code: absence is written -inf or 0, so that every member has the same structure, and one
compiled program serves all of them. The formula is written against the Python array API: the same lines take NumPy,
JAX (also with the operator's numbers traced or batched) and PyTorch arrays.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

if TYPE_CHECKING:
    from actiongap.tabular.mdp import MDP

Array = Any
"""A NumPy, JAX or PyTorch array."""


class Operator(NamedTuple):
    """The numbers of one operator. `make` and `replace` check their ranges; the bare constructor does not."""

    alpha: float = 0.0
    temperature: float = 0.0
    mellow: float = 0.0
    floor: float = -math.inf
    clip_ratio: float = 0.0
    lower_bound: float = -math.inf
    persistent: bool = False

    def replace(self, **changes: Any) -> Operator:
        """A copy with some numbers changed, their ranges checked."""
        _refuse_unknown("an operator", changes, Operator._fields)
        for name, value in changes.items():
            _check_range(name, value)
        return self._replace(**changes)

    def value(self, q: Array) -> Array:
        """The state value v(q): [..., A] -> [...]."""
        xp = array_namespace(q)
        best = xp.max(q, axis=-1)
        if _is_off(self.temperature):
            return best
        temperature = _like(xp, self.temperature, q)
        # At temperature 0 divide by 1 and multiply by 0: both the value and its gradient stay finite.
        safe = xp.where(temperature > 0, temperature, xp.ones_like(temperature))
        soft = xp.log(xp.sum(xp.exp((q - best[..., None]) / safe), axis=-1))
        return best + temperature * (soft - _like(xp, self.mellow, q) * math.log(q.shape[-1]))

    def gap_term(self, q: Array, value: Array | None = None) -> Array:
        """What is added to the target of each action, zero where clipped: [..., A] -> [..., A].

        `value` is value(q), for a caller who has it already.
        """
        xp = array_namespace(q)
        if _is_off(self.alpha):
            return xp.zeros_like(q)
        advantage = q - (self.value(q) if value is None else value)[..., None]
        if not _is_off(self.floor, -math.inf):
            advantage = xp.maximum(advantage, _like(xp, self.floor, q))
        term = _like(xp, self.alpha, q) * advantage
        return term if _is_off(self.lower_bound, -math.inf) else xp.where(self.kept(q), term, xp.zeros_like(q))

    def kept(self, q: Array) -> Array:
        """Where a gap term is added: alpha > 0 and q_a - Q_l >= c (max q - Q_l). [..., A] -> bool [..., A]."""
        xp = array_namespace(q)
        lower_bound = _like(xp, self.lower_bound, q)
        # The paper's direct form, whose ties fall as one works them out by hand. An infinite bound would make it NaN.
        unbounded = lower_bound == -math.inf
        above = q - xp.where(unbounded, xp.zeros_like(lower_bound), lower_bound)
        best = xp.max(above, axis=-1, keepdims=True)
        inside = (above >= _like(xp, self.clip_ratio, q) * best) | unbounded
        return inside & (_like(xp, self.alpha, q) > 0)

    def target(
        self, reward: Array, discount: Array, q: Array, q_next: Array, action: Array, next_value: Array | None = None
    ) -> Array:
        """The sampled target of taking `action`, for any batch shape: rows [..., A], the rest [...] -> [...].

        `discount` is gamma * (1 - terminated): nothing is bootstrapped beyond a termination, by either branch.
        `next_value` stands in for value(q_next) where it was chosen otherwise, as in double Q-learning.
        """
        xp = array_namespace(q)
        one_hot = xp.arange(q.shape[-1]) == action[..., None]
        if next_value is None:
            next_value = self.value(q_next)
        y = reward + discount * next_value + _pick(xp, self.gap_term(q), one_hot)
        if _is_off(self.persistent):
            return y
        repeated = reward + discount * _pick(xp, q_next, one_hot)
        return xp.where(xp.asarray(self.persistent), xp.maximum(y, repeated), y)

    def apply(self, q: np.ndarray, mdp: MDP, gamma: float) -> np.ndarray:
        """The exact operator on an MDP: [S, A] -> [S, A]."""
        return mdp.backup(self, q, gamma)


FAMILY: dict[str, Operator] = {
    "dqn": Operator(),
    "soft_dqn": Operator(temperature=0.03),
    "al": Operator(alpha=0.9),
    "clip_al": Operator(alpha=0.9, clip_ratio=0.8, lower_bound=0.0),
    "pal": Operator(alpha=0.9, persistent=True),
    "clip_pal": Operator(alpha=0.9, clip_ratio=0.8, lower_bound=0.0, persistent=True),
    "cvi": Operator(alpha=0.9, temperature=0.03, mellow=1.0),
    "mdqn": Operator(alpha=0.9, temperature=0.03, floor=-1.0),
    "clip_mdqn": Operator(alpha=0.9, temperature=0.03, floor=-1.0, clip_ratio=0.8, lower_bound=0.0),
}
"""The named operators with their defaults. A line here is all that a new one takes."""

_TUNABLE = ("alpha", "temperature", "floor", "clip_ratio", "lower_bound")


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(FAMILY)


def parameters(name: str) -> dict[str, float]:
    """The numbers that the named operator lets one change, with their defaults."""
    own, neutral = _named(name)._asdict(), Operator()._asdict()
    return {field: own[field] for field in _TUNABLE if own[field] != neutral[field]}


def make(name: str, **numbers: float) -> Operator:
    """The named operator, with some of its numbers changed: make("clip_al", alpha=0.99, clip_ratio=0.9)."""
    operator = _named(name)
    _refuse_unknown(name, numbers, tuple(parameters(name)))
    return operator.replace(**numbers)


def lower_bound(reward_min: float, gamma: float, horizon: float | None = None) -> float:
    """The paper's choice of Q_l: the least discounted return of `horizon` steps, R_min (1 - gamma^H) / (1 - gamma)."""
    if not math.isfinite(reward_min):
        raise ValueError(f"reward_min is {reward_min}; it must be finite")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}; it must lie in [0, 1]")
    if horizon is not None and not horizon > 0:
        raise ValueError(f"horizon is {horizon}; it must be positive, or None for an endless one")
    if horizon is None or horizon == math.inf:
        if gamma == 1:
            raise ValueError("gamma is 1 and there is no horizon: no finite bound exists; give a horizon, or gamma < 1")
        return reward_min / (1 - gamma)
    return reward_min * horizon if gamma == 1 else reward_min * (1 - gamma**horizon) / (1 - gamma)


def __getattr__(name: str) -> Callable[..., Operator]:
    """Each name is a function too: operators.clip_al(clip_ratio=0.9)."""
    if name in FAMILY:
        return partial(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *FAMILY])


_RANGES: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "alpha": ("[0, 1)", lambda x: (x >= 0) & (x < 1)),
    "temperature": ("[0, inf)", lambda x: (x >= 0) & (x < math.inf)),
    "mellow": ("[0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "floor": ("[-inf, 0]", lambda x: x <= 0),
    "clip_ratio": ("(0, 1)", lambda x: (x > 0) & (x < 1)),
    "lower_bound": ("[-inf, inf)", lambda x: x < math.inf),
    "persistent": ("False or True", lambda x: (x == 0) | (x == 1)),
}


def _check_range(name: str, value: Any) -> None:
    """Refuse a number outside its range. A traced number has no value yet, and passes."""
    allowed, inside = _RANGES[name]
    if isinstance(value, str | bytes | type(None)):
        raise ValueError(f"{name} is {value!r}; it must be a number in {allowed}")
    if type(value).__module__.startswith("jax") and not _is_concrete(value):
        return
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not np.all(inside(numbers)):
        raise ValueError(f"{name} is {value}; it must lie in {allowed}")


def _is_concrete(value: Any) -> bool:
    import jax

    return not isinstance(value, jax.core.Tracer)


def _is_off(number: Any, neutral: float = 0.0) -> bool:
    """Whether a plain number has its neutral value, so that its part of the formula can be left out.

    A traced or batched number is data: its part is always computed, and comes to the same.
    """
    return isinstance(number, bool | int | float) and number == neutral


def _like(xp: Any, number: Any, q: Array) -> Array:
    """`number` as an array with the type, and on the device, of `q`."""
    return xp.asarray(number, dtype=q.dtype)


def _pick(xp: Any, rows: Array, one_hot: Array) -> Array:
    """The entry of each row that `one_hot` marks. Written without indexing, which the array API lacks for batches."""
    return xp.sum(xp.where(one_hot, rows, xp.zeros_like(rows)), axis=-1)


def _named(name: str) -> Operator:
    if name not in FAMILY:
        near = difflib.get_close_matches(str(name), FAMILY, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise ValueError(f"no operator is called {name!r}{hint} The names are: {', '.join(FAMILY)}")
    return FAMILY[name]


def _refuse_unknown(owner: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{owner} has no number {name!r}; it has: {', '.join(known) or 'none'}")
