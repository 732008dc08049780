r"""The operators: one formula with a few numbers serves every algorithm of the family.

For a row `q = Q(s, .)` of A actions and the next row `q' = Q(s', .)`:

    value      v(q)    = max q + tau (log sum exp((q - max q) / tau) - mellow log A)        just max q at tau = 0
    gap term   g(q)_a  = alpha max(q_a - v(q), floor, -cap e)     kept only where  q_a - Q_l >= c (max q - Q_l), else 0
    target     y       = r + discount v(q') + g(q)_a              persistent: the larger of y and r + discount q'_a

In the paper's letters (Zhang, Gan & Tan, AAAI 2022): `alpha` is alpha, `clip_ratio` is c and `lower_bound` is Q_l in
eq. 4 and 5 (clipped AL) and eq. 29 (clipped MDQN), `temperature` is tau in eq. 28 (Munchausen DQN) and `floor` its l_0
(Table 2 of the supplement), `persistent` is the maximum of eq. 26 and 27 (persistent AL). `mellow = 1` puts the mean
in place of the sum inside the logarithm, which makes the soft maximum of Conservative Value Iteration, mellowmax.

Two numbers are this project's own. `cap` limits the gap term to so many times the `scale` e, which is how far gaps
move by themselves (`gap_movement`): a threshold that needs no Q_l and grows and shrinks with the rewards. `limit`
makes a clipped operator limit its term to the largest that is kept, alpha (1 - c)(max q - Q_l), instead of dropping
it.

An `Operator` is data, not code: absence is written -inf or 0, so that every member has the same structure, and one
compiled program serves all of them. The formula is written against the Python array API: the same lines take NumPy,
JAX (also with the operator's numbers traced or batched) and PyTorch arrays.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from actiongap.arrays import Array, check_actions, check_batch, check_rows, is_concrete, like, pick, shape_of

if TYPE_CHECKING:
    from actiongap.tabular.mdp import MDP


class Operator(NamedTuple):
    """The numbers of one operator. `make` and `replace` check their ranges; the bare constructor does not."""

    alpha: float = 0.0
    temperature: float = 0.0
    mellow: float = 0.0
    floor: float = -math.inf
    clip_ratio: float = 0.0
    lower_bound: float = -math.inf
    persistent: bool = False
    cap: float = math.inf
    limit: bool = False

    def replace(self, **changes: Any) -> Operator:
        """A copy with some numbers changed, their ranges checked."""
        _refuse_unknown("an operator", changes, Operator._fields)
        for name, value in changes.items():
            _check_range(name, value)
        return self._replace(**changes)

    def value(self, q: Array) -> Array:
        """The state value v(q): [..., A] -> [...]."""
        check_rows("q", q)
        xp = array_namespace(q)
        best = xp.max(q, axis=-1)
        if _is_off(self.temperature):
            return best
        temperature = like(xp, self.temperature, q)
        # At temperature 0 divide by 1 and multiply by 0: both the value and its gradient stay finite.
        safe = xp.where(temperature > 0, temperature, xp.ones_like(temperature))
        soft = xp.log(xp.sum(xp.exp((q - best[..., None]) / safe), axis=-1))
        return best + temperature * (soft - like(xp, self.mellow, q) * math.log(q.shape[-1]))

    def gap_term(self, q: Array, value: Array | None = None, *, scale: Array | float | None = None) -> Array:
        """What is added to the target of each action, zero where clipped: [..., A] -> [..., A].

        `value` is value(q), for a caller who has it already. `scale` is the e of a capped operator, one number.
        """
        check_rows("q", q)
        if value is not None:
            check_batch("value", value, q)
        xp = array_namespace(q)
        if _is_off(self.alpha):
            return xp.zeros_like(q)
        advantage = self._advantage(xp, q, value)
        if self._is_capped(scale):
            advantage = xp.maximum(advantage, self._lowest(xp, q, scale))
        alpha = like(xp, self.alpha, q)
        term = alpha * advantage
        if _is_off(self.lower_bound, -math.inf):
            return term
        inside, above = self._gate(xp, q)
        otherwise = xp.zeros_like(q)
        if not _is_off(self.limit):
            room = (1 - like(xp, self.clip_ratio, q)) * xp.maximum(above, xp.zeros_like(above))
            otherwise = xp.where(xp.asarray(self.limit), alpha * xp.maximum(advantage, -room), otherwise)
        return xp.where(inside, term, otherwise)

    def kept(self, q: Array) -> Array:
        """Where a gap term is added, capped or not: alpha > 0 and q_a - Q_l >= c (max q - Q_l). -> bool [..., A]."""
        check_rows("q", q)
        xp = array_namespace(q)
        inside, above = self._gate(xp, q)
        if not _is_off(self.limit):
            inside = inside | (xp.asarray(self.limit) & (above > 0))
        return inside & (like(xp, self.alpha, q) > 0)

    def capped(self, q: Array, *, scale: Array | float | None = None) -> Array:
        """Where the cap, or `limit`, makes the added gap term smaller: [..., A] -> bool [..., A]."""
        kept, xp = self.kept(q), array_namespace(q)
        shorter = xp.zeros_like(kept)
        if self._is_capped(scale):
            shorter = self._advantage(xp, q, None) < self._lowest(xp, q, scale)
        if not _is_off(self.limit):
            shorter = shorter | ~self._gate(xp, q)[0]
        return kept & shorter

    def _advantage(self, xp: Any, q: Array, value: Array | None) -> Array:
        """max(q_a - v(q), floor)."""
        advantage = q - (self.value(q) if value is None else value)[..., None]
        return advantage if _is_off(self.floor, -math.inf) else xp.maximum(advantage, like(xp, self.floor, q))

    def _gate(self, xp: Any, q: Array) -> tuple[Array, Array]:
        """Where q_a - Q_l >= c (max q - Q_l), [..., A]; and max q - Q_l, [..., 1], without a Q_l that is infinite."""
        lower_bound = like(xp, self.lower_bound, q)
        # The paper's direct form, whose ties fall as one works them out by hand. An infinite bound would make it NaN.
        unbounded = lower_bound == -math.inf
        above = q - xp.where(unbounded, xp.zeros_like(lower_bound), lower_bound)
        best = xp.max(above, axis=-1, keepdims=True)
        return (above >= like(xp, self.clip_ratio, q) * best) | unbounded, best

    def _is_capped(self, scale: Array | float | None) -> bool:
        """Whether the cap is to be computed: not if it is off, or if it is traced and there is no scale."""
        if _is_off(self.cap, math.inf):
            return False
        if scale is None:
            if isinstance(self.cap, int | float):
                raise ValueError(
                    f"cap is {self.cap} and there is no scale to cap by: give scale=gap_movement(q, q of the online "
                    "network), or scale=math.inf for no cap"
                )
            return False
        if shape_of(scale) != ():
            raise ValueError(f"scale has shape {shape_of(scale)}; it must be one number, as gap_movement gives it")
        return True

    def _lowest(self, xp: Any, q: Array, scale: Any) -> Array:
        """-cap e, what an advantage counts at least; -inf where either is infinite."""
        cap, scale = like(xp, self.cap, q), like(xp, scale, q)
        endless = (cap == math.inf) | (scale == math.inf)
        # Infinity times 0 is NaN, which would reach a gradient even where it is not chosen.
        cap, scale = (xp.where(endless, xp.zeros_like(each), each) for each in (cap, scale))
        return xp.where(endless, xp.full_like(cap, -math.inf), -cap * scale)

    def target(
        self,
        reward: Array,
        discount: Array,
        q: Array,
        q_next: Array,
        action: Array,
        next_value: Array | None = None,
        *,
        scale: Array | float | None = None,
    ) -> Array:
        """The sampled target of taking `action`, for any batch shape: rows [..., A], the rest [...] -> [...].

        `discount` is gamma * (1 - terminated): nothing is bootstrapped beyond a termination, by either branch.
        `next_value` stands in for value(q_next) where it was chosen otherwise, as in double Q-learning. A capped
        operator needs the `scale` e: gap_movement(q, rows of the online network).
        """
        check_rows("q", q)
        check_rows("q_next", q_next)
        if q_next.shape != q.shape:
            raise ValueError(f"q_next has shape {shape_of(q_next)}; it must be that of q, {shape_of(q)}")
        for name, given in (("reward", reward), ("discount", discount), ("action", action)):
            check_batch(name, given, q)
        check_actions(action, q.shape[-1])
        if next_value is None:
            next_value = self.value(q_next)
        else:
            check_batch("next_value", next_value, q)
        repeated = None if _is_off(self.persistent) else reward + discount * pick(q_next, action)
        return self.join(reward + discount * next_value, pick(self.gap_term(q, scale=scale), action), repeated)

    def join(self, ahead: Array, term: Array, repeated: Array | None) -> Array:
        """The target from its parts, of samples or of whole tables: r + discount v(q'), the gap term, and, if the
        operator is persistent, r + discount q'_a."""
        y = ahead + term
        if _is_off(self.persistent):
            return y
        xp = array_namespace(y)
        return xp.where(xp.asarray(self.persistent), xp.maximum(y, repeated), y)

    def apply(
        self, q: np.ndarray, mdp: MDP, gamma: float, *, scale: float | None = None, error: np.ndarray | None = None
    ) -> np.ndarray:
        """The exact operator on an MDP, [S, A] -> [S, A], with an `error` [S, A] added."""
        result = mdp.backup(self, q, gamma, scale)
        return result if error is None else result + error


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
    "cap_al": Operator(alpha=0.9, cap=8.0),
    "cap_pal": Operator(alpha=0.9, cap=8.0, persistent=True),
    "cap_mdqn": Operator(alpha=0.9, temperature=0.03, floor=-1.0, cap=8.0),
}
"""The named operators with their defaults. A line here is all that a new one takes."""

_EXACT_ONLY = {
    "look_ahead": "look_ahead is for exact sweeps: it asks which action is greedy in TQ, and a sample shows TQ of one "
    "action alone. Take al, clip_al or cap_al; on an MDP, tabular.look_ahead.LookAhead(alpha)"
}

_TUNABLE = ("alpha", "temperature", "floor", "clip_ratio", "lower_bound", "cap")


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(FAMILY)


def parameters(name: str) -> dict[str, float]:
    """The numbers that the named operator lets one change, with their defaults."""
    own, neutral = _named(name)._asdict(), Operator()._asdict()
    numbers = {field: own[field] for field in _TUNABLE if own[field] != neutral[field]}
    return numbers | ({"limit": own["limit"]} if "clip_ratio" in numbers else {})


def make(name: str, **numbers: float) -> Operator:
    """The named operator, with some of its numbers changed: make("clip_al", alpha=0.99, clip_ratio=0.9)."""
    operator = _named(name)
    _refuse_unknown(name, numbers, tuple(parameters(name)))
    return operator.replace(**numbers)


def from_numbers(numbers: Mapping[str, Any]) -> Operator:
    """The operator whose numbers were kept by name, infinities also as text. A number that came later is neutral."""
    neutral = Operator()._asdict()
    _refuse_unknown("an operator", dict(numbers), Operator._fields)
    return Operator(**{name: type(default)(numbers.get(name, default)) for name, default in neutral.items()})


def gap_movement(q: Array, other: Array) -> Array:
    """The scale e of a capped operator: how far the gaps of two tables are apart. Both [..., A] -> [].

    The root mean square, over all actions but the one that is greedy in `q`, of the difference between q's gap to that
    action and the gap to the same action in `other`. `q` is what the gap term is from: the target network beside the
    online one, Q_k beside Q_{k-1}.
    """
    for name, rows in (("q", q), ("other", other)):
        check_rows(name, rows)
    if other.shape != q.shape:
        raise ValueError(f"other has shape {shape_of(other)}; it must be that of q, {shape_of(q)}")
    xp = array_namespace(q)
    moved = other - q
    difference = pick(moved, xp.argmax(q, axis=-1))[..., None] - moved  # 0 for the greedy action itself
    count = math.prod(q.shape[:-1]) * (q.shape[-1] - 1)
    return xp.sqrt(xp.sum(difference**2) / max(count, 1))


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
    """Each name is a function too: operators.clip_al(clip_ratio=0.9); `custom` makes your own operator."""
    if name == "custom":
        from actiongap.custom_operators import custom

        return custom
    if name in FAMILY:
        return functools.partial(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *FAMILY, "custom"])


_RANGES: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "alpha": ("lie in [0, 1)", lambda x: (x >= 0) & (x < 1)),
    "temperature": ("lie in [0, inf)", lambda x: (x >= 0) & (x < math.inf)),
    "mellow": ("lie in [0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "floor": ("lie in [-inf, 0]", lambda x: x <= 0),
    "clip_ratio": ("lie in (0, 1)", lambda x: (x > 0) & (x < 1)),
    "lower_bound": ("lie in [-inf, inf)", lambda x: x < math.inf),
    "persistent": ("be False or True", lambda x: (x == 0) | (x == 1)),
    "cap": ("lie in (0, inf]", lambda x: x > 0),
    "limit": ("be False or True", lambda x: (x == 0) | (x == 1)),
}


def _check_range(name: str, value: Any) -> None:
    """Refuse a number outside its range. A traced number has no value yet, and passes."""
    allowed, inside = _RANGES[name]
    if isinstance(value, str | bytes | type(None)):
        raise ValueError(f"{name} is {value!r}; it must {allowed}")
    if not is_concrete(value):
        return
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf" or not np.all(inside(numbers)):
        raise ValueError(f"{name} is {value}; it must {allowed}")


def _is_off(number: Any, neutral: float = 0.0) -> bool:
    """Whether a plain number has its neutral value, so that its part of the formula can be left out.

    A traced or batched number is data: its part is always computed, and comes to the same.
    """
    return isinstance(number, bool | int | float) and number == neutral


def _named(name: str) -> Operator:
    if name in _EXACT_ONLY:
        raise ValueError(_EXACT_ONLY[name])
    if name not in FAMILY:
        near = difflib.get_close_matches(str(name), FAMILY, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise ValueError(f"no operator is called {name!r}{hint} The names are: {', '.join(FAMILY)}")
    return FAMILY[name]


def _refuse_unknown(owner: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{owner} has no number {name!r}; it has: {', '.join(known) or 'none'}")
