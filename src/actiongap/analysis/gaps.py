r"""The action gaps that any agent meets when it plays: of this package, of another, or of a function.

    gap(s)   = best minus second best of Q(s, .)            value(s) = max over a of Q(s, a)
    flips    = share of states whose greedy action changes when a normal error of standard deviation sigma is added to
               each entry of Q(s, .): mean of 1 - E[prod over other a of Phi(x + (max Q - Q_a) / sigma)], x ~ N(0, 1)
    return   = sum of gamma^k r_{t+k} up to the episode's end: what the value was an estimate of

Nothing here knows what an agent is: only `q_values`, a function of a batch of observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from actiongap.tabular.iteration import action_gaps as gaps_of

if TYPE_CHECKING:
    import pandas

    from actiongap.envs.core import Environment
    from actiongap.training.evaluation import Visit

QValues = Callable[[np.ndarray], Any]
"""[B, ...] -> [B, A]."""
TAIL = 0.01
"""A return that was cut short counts where at most this share of what follows is missing: gamma^k <= TAIL."""
LIMIT_STEPS = 10_000


def action_gaps(
    q_values: QValues,
    environment: Any,
    episodes: int = 10,
    seed: int = 0,
    gamma: float = 0.99,
    limit_steps: int = LIMIT_STEPS,
) -> pandas.DataFrame:
    """Play greedily by `q_values`, [B, ...] -> [B, A], and tell of each state that was visited. A row a state:

    episode, step   which state
    action          the greedy one, which was taken
    value, gap      max Q, and by how much it is above the second best
    reward          of the step
    discounted_return     what really followed, discounted
    complete        whether that return is all: the episode terminated, or what is missing weighs at most 1%
    q_0, q_1, ...   the values of the actions

    The same seed plays the same episodes, whoever plays.
    """
    import pandas

    from actiongap import envs

    if isinstance(episodes, bool) or int(episodes) != episodes or episodes < 1:
        raise ValueError(f"episodes is {episodes!r}; it must be a whole number, 1 or more")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}; it must lie in [0, 1]")
    made = envs.make(environment)
    tables = []
    for number in range(int(episodes)):
        visited = play(q_values, made, number, seed, limit_steps)
        q = np.stack([visit.q for visit in visited])
        rewards = np.array([visit.reward for visit in visited])
        left = len(visited) - np.arange(len(visited))
        columns = {
            "episode": number,
            "step": np.arange(len(visited)),
            "action": [visit.action for visit in visited],
            "value": q.max(axis=1),
            "gap": gaps_of(q),
            "reward": rewards,
            "discounted_return": discounted(rewards, gamma),
            "complete": visited[-1].terminated | (gamma**left <= TAIL),
        }
        tables.append(pandas.DataFrame(columns | {f"q_{action}": column for action, column in enumerate(q.T)}))
    return pandas.concat(tables, ignore_index=True)


def play(
    q_values: QValues,
    environment: Environment,
    episode: int,
    seed: int = 0,
    limit_steps: int = LIMIT_STEPS,
    pictures: bool = False,
) -> list[Visit]:
    """One greedy episode. It is the same with pictures and without."""
    from actiongap.training.chance import Stream, environment_seed
    from actiongap.training.evaluation import visits

    def checked(observation: np.ndarray) -> np.ndarray:
        return _checked(q_values(observation), len(observation), environment)

    of_episode = environment_seed(seed, Stream.EVALUATION, 0, episode)
    return list(visits(environment, checked, of_episode, limit_steps, pictures))


def discounted(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """The discounted return from each step on: [T] -> [T]."""
    returns, following = np.empty(len(rewards)), 0.0
    for step in reversed(range(len(rewards))):
        returns[step] = following = rewards[step] + gamma * following
    return returns


def flips(q: np.ndarray, sigmas: Sequence[float] | np.ndarray, nodes: int = 40) -> np.ndarray:
    """The share of rows [N, A] whose greedy action changes under noise, for each standard deviation: [K] -> [K]."""
    from scipy.special import ndtr

    # The integrand has the same smoothness for every gap and sigma, so that a fixed rule is exact to many digits.
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    below = np.sort(q.max(axis=1, keepdims=True) - q, axis=1)[:, 1:]  # how far each other action is below the best
    shares = []
    for sigma in np.asarray(sigmas, dtype=float):
        if sigma == 0:
            shares.append(0.0)
            continue
        stays = np.prod(ndtr(points[:, None, None] + below / sigma), axis=2)  # [nodes, N]
        shares.append(1 - float((weights @ stays).mean() / weights.sum()))
    return np.clip(shares, 0.0, 1.0)


def noise_of_flips(q: np.ndarray, share: float = 0.1) -> float:
    """The noise that changes the greedy action in this share of the rows; inf where none does."""
    low, high = 0.0, max(float(np.ptp(q)), 1e-12)
    most = 1 - 1 / q.shape[1]  # of endless noise, where every action is as likely
    if share >= most:
        return np.inf
    while flips(q, [high])[0] < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(q, [middle])[0] >= share else (middle, high)
    return high


def q_columns(table: pandas.DataFrame) -> np.ndarray:
    """The values of all actions in a table of `action_gaps`: [N, A]."""
    names = sorted((name for name in table if str(name).startswith("q_")), key=lambda name: int(str(name)[2:]))
    return table[names].to_numpy(dtype=float)


def _checked(q: Any, rows: int, environment: Environment) -> np.ndarray:
    found = np.asarray(q, dtype=float)
    if found.shape != (rows, environment.num_actions):
        raise ValueError(
            f"the Q-values have shape {found.shape}; for {rows} observation{'' if rows == 1 else 's'} of "
            f"{environment.name}, with {environment.num_actions} actions, it must be {(rows, environment.num_actions)}"
        )
    if not np.isfinite(found).all():
        raise ValueError("some Q-values are not finite: the agent has diverged, or its function is wrong")
    return found
