"""What a user holds: an agent that learns an environment, acts in it, and is kept in a folder.

agent = Agent("clip_al", "minatar/breakout", seed=0, clip_ratio=0.9)     # or "CartPole-v1", or an environment
agent.learn(100_000, out="runs/breakout")
agent.predict(observation)
agent = Agent.load("runs/breakout")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actiongap import envs, operators
from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game
from actiongap.learning import schedules
from actiongap.learning import settings as settings_module
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training import checkpoint, compilation, run
from actiongap.training import progress as progresses
from actiongap.training.apex import settings as apex_settings
from actiongap.training.apex import state as apex_state
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.evaluation import Episodes
from actiongap.training.program import NetworkBuilder
from actiongap.training.run_folder import Callback, RunFolder, RunFolderError, describe, read_settings

_SETTINGS = tuple(field.name for field in dataclasses.fields(Settings))
_BY_RULE = "by rule"


class Agent:
    """One operator, one environment, one seed.

    `environment` is the name of a game of this package or of a Gymnasium environment, a `Game`, an instance of
    `gymnasium.Env` or `gymnasium.vector.VectorEnv`, or a function that makes one. An instance is a pattern: the agent
    plays in copies of it. `num_envs` copies of a single Gymnasium environment are stepped side by side.

    `overrides` are fields of `Settings`, or numbers of the operator (alpha, clip_ratio, temperature, lower_bound,
    floor). Those not given are the paper's for its environments. A clipped operator on any other environment has its
    lower_bound from the paper's rule, R_min (1 - gamma^H) / (1 - gamma): R_min is the smallest reward of the warm-up,
    at most 0, and H the time limit.

    alpha, clip_ratio and temperature may be schedules: clip_ratio=(0.9, 0.5, 100_000) goes from .9 to .5, linearly over
    the first 100,000 steps. `network` may be a function that builds one's own Equinox module, from an observation's
    shape and dtype, the number of actions and a key; it takes a batch [B, ...] and gives [B, A].
    """

    def __init__(self, algorithm: str | Operator, environment: Any, seed: int = 0, **overrides: Any) -> None:
        made = envs.make(environment)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
            raise ValueError(f"seed is {seed!r}; it must be a whole number in [0, 2^32)")
        numbers = {name: overrides.pop(name) for name in list(overrides) if name in Operator._fields}
        numbers, changes, schedule_steps = _split_schedules(numbers)
        for name in overrides:
            if name not in _SETTINGS:
                raise ValueError(
                    f"there is no setting {name!r}; there are: {', '.join(_SETTINGS)}; "
                    f"and the operator's numbers: {', '.join(Operator._fields)}"
                )
        build_network = None
        if callable(overrides.get("network")):
            build_network, overrides["network"] = overrides["network"], "custom"
        native = getattr(made, "native_num_envs", None)
        if native is not None:
            overrides.setdefault("num_envs", native)
        settings = dataclasses.replace(settings_module.defaults(made.name), **overrides)
        _check_num_envs(made, native, settings.num_envs)
        if settings.network == "custom" and build_network is None:
            raise ValueError("the network is one's own: give the function that builds it, as network=...")
        by_rule = False
        if isinstance(algorithm, Operator):
            name, operator = _name_of(algorithm), algorithm.replace(**numbers)
        else:
            name = algorithm
            defaults = settings_module.operator_defaults(made.name, name)
            by_rule = (
                "lower_bound" in defaults
                and "lower_bound" not in numbers
                and settings_module.defaults(made.name) is settings_module.GENERAL
            )
            operator = operators.make(name, **{**defaults, **numbers})
        schedule = schedules.linear(operator, operator.replace(**changes), schedule_steps) if changes else None
        for each in (operator,) if schedule is None else (schedule.start, schedule.end):
            settings_module.check(settings, each)
        self.algorithm = name
        self._task = run.Task(made, settings, operator, int(seed), by_rule, schedule, build_network)
        self._state: run.State | None = None
        self._home: Path | None = None
        self._apex: ApexSettings | None = None
        compilation.use_cache()

    @property
    def environment(self) -> Environment:
        """What is learned: its name, the shape of its observations, its actions, its time limit."""
        return self._task.environment

    @property
    def game(self) -> Game | Environment:
        """The JAX game that is learned; where it is another environment, the same as `environment`."""
        environment = self._task.environment
        return environment.game if isinstance(environment, GameEnvironment) else environment

    @property
    def settings(self) -> Settings:
        return self._task.settings

    @property
    def seed(self) -> int:
        return self._task.seed

    @property
    def operator(self) -> Operator:
        """The operator; after the warm-up, with the lower bound that the rule gave, if it is by rule."""
        return self._task.operator if self._state is None else run.operator_at(self._task, self._state)

    @property
    def step(self) -> int:
        """How many environment steps the agent has learned from."""
        return 0 if self._state is None else self._state.step

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of metrics.csv so far."""
        return [] if self._state is None else list(self._state.rows)

    def learn(
        self,
        steps: int | None = None,
        progress: bool = True,
        out: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint_seconds: float = 60.0,
        command: str | None = None,
    ) -> Agent:
        """Learn for so many steps more; by default, those of the settings.

        With `out`, the run is kept in that folder. If the folder has this run already, a new agent goes on from where
        it stopped, up to `steps` in all: the same command, given again, finishes what was interrupted.
        `command` is what the folder tells as the way to make the run again; by default this program's command line.
        """
        if self._apex is not None:
            raise ValueError("this agent learned with actors: go on with learn_with_actors")
        stop = self._stop(steps)
        folder = None if out is None else self._open(Path(out), command)
        try:
            state = self._current()
            shown = progresses.make(progress, state.step, stop)
            run.run(self._task, state, max(stop, state.step), shown, folder, callbacks, checkpoint_seconds)
        finally:
            if folder is not None:
                folder.close()
        return self

    def learn_with_actors(
        self,
        steps: int | None = None,
        apex: ApexSettings | None = None,
        out: str | Path | None = None,
        address: str | None = None,
        progress: bool = True,
        callbacks: Sequence[Callback] = (),
        checkpoint_seconds: float = 60.0,
        dashboard: bool = False,
    ) -> Agent:
        """Learn by Ape-X: actors on the Ray cluster at the address, or on one that is started here for the purpose.

        Up to `steps` environment steps of all actors. With `out`, a run that is in that folder is gone on with.
        `training.apex.settings.preset` gives Ape-X's settings, and the overrides of an agent that go with them.
        """
        from actiongap.training.apex import run as apex_run

        if self._apex is None and self._state is not None:
            raise ValueError("this agent has learned without actors: make a new one to learn with them")
        stop = self._stop(steps, since=0)
        self._apex = apex or self._apex or ApexSettings()
        folder = None if out is None else RunFolder(out, self.identity())
        try:
            state = apex_run.train(
                self._task, self._apex, stop, folder, address, progress, callbacks, checkpoint_seconds, dashboard
            )
        finally:
            if folder is not None:
                folder.close()
        self._take(state)
        return self

    def q_values(self, observation: Any) -> np.ndarray:
        """The action values of an observation [...] -> [A], or of a batch of them [B, ...] -> [B, A]."""
        shape, dtype = self.environment.observation_shape, np.dtype(self.environment.observation_dtype)
        array = np.asarray(observation)
        if array.shape[-len(shape) :] != tuple(shape) or array.ndim > len(shape) + 1:
            raise ValueError(
                f"the observation has shape {list(array.shape)}; {self.environment.name} has {list(shape)}, "
                "or a batch of such"
            )
        batch = array.reshape(-1, *shape).astype(dtype)
        program = self._task.program
        q = np.asarray(program.q_values(self._current().carry.learner.online, batch))
        return q.reshape(*array.shape[: array.ndim - len(shape)], -1)

    def predict(self, observation: Any) -> Any:
        """The greedy action: an int for one observation, an array of them for a batch."""
        actions = np.argmax(self.q_values(observation), axis=-1)
        return int(actions) if actions.ndim == 0 else actions

    def evaluate(self, episodes: int = 10, seed: int | None = None) -> Episodes:
        """Greedy episodes: their undiscounted returns, their lengths, and whether they were cut at the limit.

        The same agent plays the same episodes again; another `seed` gives others.
        """
        if isinstance(episodes, bool) or int(episodes) != episodes or episodes < 1:
            raise ValueError(f"episodes is {episodes!r}; it must be a whole number, 1 or more")
        settings = dataclasses.replace(self.settings, evaluation_episodes=int(episodes))
        program = dataclasses.replace(self._task, settings=settings).program
        state = self._current()
        chosen = np.uint32(self.seed if seed is None else seed)
        played = program.evaluate(state.carry.learner.online, chosen, np.int32(state.step))
        return Episodes(*(np.asarray(column) for column in played))  # type: ignore[arg-type]

    def save(self, folder: str | Path) -> None:
        """Keep the agent in a folder, with all that it takes to go on learning."""
        if self._apex is not None:
            raise ValueError("an agent that learned with actors is kept by the folder given to learn_with_actors")
        state = self._current()
        opened = self._open(Path(folder))
        try:
            run.save(self._task, state, opened)
            run.tell(opened, self._task, state, "finished")
        finally:
            opened.close()

    @classmethod
    def load(cls, folder: str | Path, environment: Any = None, network: NetworkBuilder | None = None) -> Agent:
        """The agent of a folder, as it was at its last checkpoint. What is one's own, environment or network, is given
        again."""
        kept = read_settings(folder)
        apex, kept["settings"] = apex_settings.split(kept["settings"])
        agent = cls._from_settings(kept, environment, network)
        if apex is None:
            agent._state = run.load(agent._task, folder)
        else:
            agent._apex = apex
            agent._take(apex_state.load(agent._task, folder))
        agent._home = Path(folder).resolve()
        return agent

    @classmethod
    def _from_settings(cls, kept: dict[str, Any], environment: Any, network: NetworkBuilder | None) -> Agent:
        name = kept["environment"]
        if environment is None and envs.is_known(name):
            environment = name
        made = None if environment is None else envs.make(environment)
        if made is None or _describe_environment(made) != kept["game"]:
            raise RunFolderError(f"the run is of {kept['game']}: give it as Agent.load(folder, environment=...)")
        numbers = dict(kept["operator"])
        by_rule = numbers["lower_bound"] == _BY_RULE
        if by_rule:
            numbers["lower_bound"] = 0.0
        operator = Operator(*(type(default)(numbers[name]) for name, default in Operator()._asdict().items()))
        changing = kept.get("schedule") or {}
        settings = {key: float(value) if value in ("inf", "-inf") else value for key, value in kept["settings"].items()}
        if network is not None:
            settings["network"] = network
        agent = cls(operator, made, kept["seed"], **settings, **changing)
        agent.algorithm = kept["algorithm"]
        agent._task = dataclasses.replace(agent._task, find_lower_bound=by_rule)
        return agent

    def _stop(self, steps: int | None, since: int | None = None) -> int:
        """The step to learn up to, for so many steps more."""
        steps = self.settings.training_steps if steps is None else steps
        if isinstance(steps, bool) or int(steps) != steps or steps < 0:
            raise ValueError(f"steps is {steps!r}; it must be a whole number, 0 or more")
        stop = (self.step if since is None else since) + int(steps)
        if stop >= 2**31:
            raise ValueError(f"{stop:,} steps in all are more than the counters hold; at most 2^31 - 1")
        return stop

    def _take(self, learned: apex_state.State) -> None:
        """Be the agent that actors and a learner have made."""
        carry = self._task.program.init(np.uint32(self.seed))._replace(learner=learned.learner)
        self._state = run.State(learned.step, carry, learned.rows, learned.episodes)

    def _current(self) -> run.State:
        if self._state is None:
            self._state = run.start(self._task)
        return self._state

    def identity(self) -> dict[str, Any]:
        """What makes this run another than others. How long it lasts does not."""
        settings = dataclasses.asdict(self.settings)
        settings.pop("training_steps")
        if self._apex is not None:
            settings |= apex_settings.describe(self._apex)
        operator = self._task.operator._asdict()
        if self._task.find_lower_bound:
            operator["lower_bound"] = _BY_RULE
        return {
            "environment": self.environment.name,
            "game": _describe_environment(self.environment),
            "algorithm": self.algorithm,
            "operator": operator,
            "schedule": _describe(self._task.schedule),
            "settings": settings,
            "seed": self.seed,
        }

    def _open(self, path: Path, command: str | None = None) -> RunFolder:
        """The folder, holding the same run as this agent: taken up by a new agent, filled by one that has learned."""
        folder = RunFolder(path, self.identity(), command)
        try:
            if self.step == 0:
                self._state = run.load(self._task, path)
            elif checkpoint.exists(folder.checkpoint):
                kept = checkpoint.load_metadata(folder.checkpoint)["step"]
                if self._home != path.resolve() or kept > self.step:
                    raise RunFolderError(
                        f"{path} has a run at step {kept:,}, which is not where this agent came from: "
                        f"name a new folder, or go on with Agent.load({str(path)!r})"
                    )
            run.attach(self._task, self._current(), folder)
            self._home = path.resolve()
        except BaseException:
            folder.close()
            raise
        return folder


def _split_schedules(numbers: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The numbers at the start, those that change as they are at the end, and over how many steps."""
    scheduled = {name: value for name, value in numbers.items() if isinstance(value, tuple | list)}
    for name, value in scheduled.items():
        if name not in schedules.SCHEDULED or len(value) != 3:
            allowed = ", ".join(schedules.SCHEDULED)
            raise ValueError(f"{name} is {value!r}; {allowed} may be (start, end, steps), all others are numbers")
    lengths = {value[2] for value in scheduled.values()}
    if len(lengths) > 1:
        raise ValueError(f"the schedules last {sorted(lengths)} steps; they must all last equally long")
    start = {name: value[0] if name in scheduled else value for name, value in numbers.items()}
    return start, {name: value[1] for name, value in scheduled.items()}, int(max(lengths, default=1))


def _describe_environment(environment: Environment) -> str:
    return describe(environment.game if isinstance(environment, GameEnvironment) else environment)


def _check_num_envs(environment: Environment, native: int | None, num_envs: int) -> None:
    if isinstance(environment, GameEnvironment) and num_envs != 1:
        raise ValueError(
            f"num_envs is {num_envs}; the game {environment.name} is trained inside of one program, with num_envs 1. "
            "More are for Gymnasium environments"
        )
    if native not in (None, num_envs):
        raise ValueError(f"num_envs is {num_envs}; {environment.name} is a vector of {native}: leave num_envs out")


def _describe(schedule: schedules.Schedule | None) -> dict[str, list[float]] | None:
    """The schedule as the overrides that make it."""
    if schedule is None:
        return None
    ends = {name: (getattr(schedule.start, name), getattr(schedule.end, name)) for name in schedules.SCHEDULED}
    return {name: [start, end, schedule.steps] for name, (start, end) in ends.items() if start != end}


def _name_of(operator: Operator) -> str:
    """The name of a member of the family whose numbers these are, else `custom`."""
    return next((name for name, member in operators.FAMILY.items() if member == operator), "custom")
