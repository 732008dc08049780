"""The class `Agent`: it learns an environment, acts in it, and is saved in a folder.

agent = Agent("clip_al", "minatar/breakout", seed=0, clip_ratio=0.9)     # or "CartPole-v1", or an environment
agent.learn(100_000, out="runs/breakout")
agent.predict(observation)
agent = Agent.load("runs/breakout")
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from actiongap.envs.core import Environment
from actiongap.envs.game_adapter import GameEnvironment
from actiongap.games.core import Game
from actiongap.learning.learner import LearnerState
from actiongap.learning.settings import Settings
from actiongap.operators import Operator
from actiongap.training import best as best_networks
from actiongap.training import checkpoint, compilation, display, export, loop, tables, task
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.callbacks import Callback
from actiongap.training.evaluation import Episodes
from actiongap.training.journal import History, Journal
from actiongap.training.program import NetworkBuilder
from actiongap.training.run_folder import CHECKPOINT, RunFolder, RunFolderError, read_settings
from actiongap.training.signals import stop_on_signals


@dataclasses.dataclass
class _Learned:
    """What an agent is made of: small. All that it takes to go on learning is in `Agent._training`, or in a folder."""

    step: int
    learner: LearnerState
    reward_min: float
    history: History
    goes_on: bool = True
    """False of the best network of a run, which is all that was kept of its step."""


class Agent:
    """One operator, one environment, one seed.

    `algorithm` is the name of an operator, an `Operator`, or your own function (see `custom_operators`), also as
    "module:function".

    `environment` is the name of a game of this package or of a Gymnasium environment, a `Game`, an instance of
    `gymnasium.Env` or `gymnasium.vector.VectorEnv`, or a function that makes one. An instance is a pattern: the agent
    plays in copies of it. `num_envs` of a single Gymnasium environment are stepped side by side.

    `overrides` are fields of `Settings`, or numbers of the operator (alpha, clip_ratio, temperature, lower_bound,
    floor). Those not given are the paper's for its environments. A clipped operator on any other environment has its
    lower_bound from the paper's rule, R_min (1 - gamma^H) / (1 - gamma): R_min is the smallest reward of the warm-up,
    at most 0, and H the time limit. With apex="paper" or apex="horgan" the agent learns by Ape-X, and the fields of
    `ApexSettings` may be given too.

    alpha, clip_ratio and temperature may be schedules: clip_ratio=(0.9, 0.5, 100_000) goes from .9 to .5, linearly over
    the first 100,000 steps. `network` may be a function that builds your own Equinox module, from an observation's
    shape and dtype, the number of actions and a key; it takes a batch [B, ...] and gives [B, A]. `optimiser` may be an
    `optax.GradientTransformation`.
    """

    def __init__(
        self, algorithm: str | Operator | Callable[..., Any], environment: Any, seed: int = 0, **overrides: Any
    ) -> None:
        self._be(task.make(algorithm, environment, seed, overrides))

    @classmethod
    def of_task(cls, of: task.Task) -> Agent:
        """The agent that learns this task."""
        agent = cls.__new__(cls)
        agent._be(of)
        return agent

    def _be(self, of: task.Task) -> None:
        self._task = of
        self._learned: _Learned | None = None
        self._training: loop.Training | None = None
        self._home: Path | None = None
        compilation.use_cache()

    def __repr__(self) -> str:
        return f"Agent({self.algorithm!r}, {self.environment.name!r}, seed={self.seed}) at step {self.step:,}"

    @property
    def algorithm(self) -> str:
        """The operator's name, `module:function` of a custom one; `custom` for numbers without a name."""
        return self._task.algorithm

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
        if self._learned is None:
            return self._task.operator
        return self._task.operator_at(self._learned.step, self._learned.reward_min)

    @property
    def step(self) -> int:
        """How many environment steps the agent has learned from."""
        return 0 if self._learned is None else self._learned.step

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of metrics.csv so far."""
        return [] if self._learned is None else self._learned.history.rows

    def learn(
        self,
        steps: int | None = None,
        *,
        out: str | Path | None = None,
        apex: ApexSettings | None = None,
        address: str | None = None,
        dashboard: bool = False,
        progress: bool = True,
        callbacks: Sequence[Callback] = (),
        checkpoint_seconds: float = 60.0,
        command: str | None = None,
    ) -> Agent:
        """Learn for so many steps more; by default, those of the settings.

        With `out`, the run is kept in that folder. If the folder has this run already, a new agent goes on from where
        it stopped, up to `steps` in all: the same command, given again, finishes what was interrupted.
        `command` is recorded as the way to repeat the run; by default this program's command line.

        With `apex`, or where the agent was made with a preset of it, learn by Ape-X: actors on the Ray cluster at the
        address, or on one that is started here for the purpose. An agent that learned one way cannot go on the other.
        """
        self._refuse_what_cannot_go_on()
        stop = self._stop(steps)
        if apex is not None and apex != self._task.apex:
            if self._learned is not None:
                raise ValueError("this agent was trained in another way: make a new one to train it with these actors")
            self._task = dataclasses.replace(self._task, apex=apex)
        if self._task.apex is not None:
            from actiongap.training.apex import run as apex_run

            if self.step and (out is None or self._home != Path(out).resolve()):
                raise ValueError("an agent trained with Ape-X continues in its own folder: pass it as out=...")
            state = apex_run.train(
                self._task, stop, out, address, dashboard, progress, callbacks, checkpoint_seconds, command
            )
            self._learned = _Learned(state.step, state.learner, state.reward_min, state.history)
            self._home = None if out is None else Path(out).resolve()
            return self
        folder = None if out is None else self._open(Path(out), command)
        try:
            with stop_on_signals():
                training, history = self._take_up()
                journal = Journal(self._task, history, folder, display.make(progress), callbacks)
                try:
                    loop.run(self._task, training, max(stop, training.step), journal, checkpoint_seconds)
                finally:
                    self._keep(training, history)
        finally:
            if folder is not None:
                folder.close()
                self._training = None  # the folder has it
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
        batch = _converted(array, dtype).reshape(-1, *shape)
        q = np.asarray(self._task.program.q_values(self._current().learner.online, batch))
        return q.reshape(*array.shape[: array.ndim - len(shape)], -1)

    def predict(self, observation: Any) -> Any:
        """The greedy action: an int for one observation, an array of them for a batch."""
        actions = np.argmax(self.q_values(observation), axis=-1)
        return int(actions) if actions.ndim == 0 else actions

    def evaluate(self, episodes: int = 10, seed: int | None = None) -> Episodes:
        """Greedy episodes: their undiscounted returns, their lengths, and whether they were cut at the limit.

        The same agent plays the same episodes again; another `seed` gives others.
        """
        settings = dataclasses.replace(self.settings, evaluation_episodes=_whole("episodes", episodes, 1))
        program = dataclasses.replace(self._task, settings=settings).program
        learned = self._current()
        chosen = np.uint32(self.seed if seed is None else task.check_seed(seed))
        played = program.evaluate(learned.learner.online, chosen, np.int32(learned.step))
        return Episodes(*(np.asarray(column) for column in played))  # type: ignore[arg-type]

    def export(self, path: str | Path) -> None:
        """Write the network for other programs, with the settings in it: a .onnx file, or a .safetensors file.

        An ONNX model takes observations as `q_values` does, and gives the same. safetensors has the arrays by name.
        """
        learned = self._current()
        export.write(path, self._task, self.operator, learned.step, learned.learner.online)

    def save(self, folder: str | Path) -> None:
        """Keep the agent in a folder, with all that it takes to go on learning."""
        if self._task.apex is not None:
            raise ValueError("an agent trained with Ape-X is saved in the folder passed to learn")
        self._refuse_what_cannot_go_on()
        opened = self._open(Path(folder))
        try:
            training, history = self._take_up()
            journal = Journal(self._task, history, opened, display.Silent())
            journal.set_status("running", training.step, training.reward_min)
            opened.restore(history.rows, history.episodes)
            loop.save(self._task, training, history, opened)
            journal.write_best()
            journal.set_status("finished", training.step, training.reward_min)
        finally:
            opened.close()

    @classmethod
    def load(
        cls,
        folder: str | Path,
        environment: Any = None,
        network: NetworkBuilder | None = None,
        optimiser: optax.GradientTransformation | None = None,
        operator: Any = None,
        best: bool = False,
    ) -> Agent:
        """The agent of a folder, as it was at its last checkpoint. Your own environment, network or
        optimiser, is given again; an operator, too, if its function is in no module, but in a script or a notebook. The
        replay stays on disk until the agent goes on learning.

        If `best`, the agent as it was at the best evaluation of a run with keep_best=True: it acts, and does not learn.
        """
        record = read_settings(folder)
        try:
            agent = cls.of_task(task.from_record(record, environment, network, optimiser, operator))
        except ValueError as error:
            raise RunFolderError(f"{Path(folder) / 'settings.json'}: {error}") from error
        agent._home = Path(folder).resolve()
        if best:
            agent._learned = _load_best(agent._task, Path(folder))
        elif checkpoint.exists(Path(folder) / CHECKPOINT):
            agent._learned = _load(agent._task, Path(folder))
        return agent

    def identity(self) -> dict[str, Any]:
        """What makes this run another than others. How long it lasts does not."""
        return self._task.identity()

    def _stop(self, steps: int | None) -> int:
        """The step to learn up to, for so many steps more."""
        steps = self.settings.training_steps if steps is None else steps
        stop = self.step + _whole("steps", steps, 0)
        if stop >= 2**31:
            raise ValueError(f"{stop:,} steps in total are more than the counters hold; the limit is 2^31 - 1")
        return stop

    def _refuse_what_cannot_go_on(self) -> None:
        if self._learned is not None and not self._learned.goes_on:
            raise ValueError(
                f"this agent is the best network of {self._home}, without the state needed to learn or to be saved: "
                "load the run without best to continue training; export writes the network"
            )

    def _current(self) -> _Learned:
        if self._learned is None:
            self._learned = _Learned(0, self._task.program.init_learner(np.uint32(self.seed)), 0.0, History())
        return self._learned

    def _keep(self, training: loop.Training, history: History) -> None:
        self._training = training
        self._learned = _Learned(training.step, training.carry.learner, training.reward_min, history)

    def _take_up(self) -> tuple[loop.Training, History]:
        """All that it takes to go on: as it is in memory, in the agent's folder, or at the start."""
        if self._training is not None:
            return self._training, self._current().history
        if self._home is not None:
            training, history = loop.load(self._task, self._home)
            if self.step and training.step != self.step:
                raise RunFolderError(
                    f"{self._home} has continued to step {training.step:,}, and this agent is at step {self.step:,}: "
                    "continue with Agent.load"
                )
            return training, history
        return loop.start(self._task), History()

    def _open(self, path: Path, command: str | None = None) -> RunFolder:
        """The folder, holding the same run as this agent: taken up by a new agent, filled by one that has learned."""
        folder = RunFolder(path, self.identity(), command)
        try:
            home = path.resolve()
            if self.step and checkpoint.exists(folder.checkpoint):
                saved_step = checkpoint.load_metadata(folder.checkpoint)["step"]
                if self._home != home or saved_step > self.step:
                    raise RunFolderError(
                        f"{path} has a run at step {saved_step:,}, which is not where this agent came from: "
                        f"choose a new folder, or continue with Agent.load({str(path)!r})"
                    )
            if not self.step:
                self._training = None  # a new agent takes up what is there
            elif self._training is None and self._home != home:
                self._keep(*self._take_up())  # what it has learned is in another folder
            self._home = home
        except BaseException:
            folder.close()
            raise
        return folder


def _load(of: task.Task, folder: Path) -> _Learned:
    """The learner of a checkpoint, without the replay."""
    path = folder / CHECKPOINT
    prefix = "" if of.apex is not None else ".learner"

    def is_wanted(name: str) -> bool:
        return name == ".reward_min" or (name.startswith(prefix) and not best_networks.is_of_best(name))

    arrays, metadata = checkpoint.read(path, is_wanted)
    reward_min = float(arrays.pop(".reward_min", metadata.get("reward_min", 0.0)))
    like = jax.eval_shape(of.program.init_learner, jax.ShapeDtypeStruct((), np.uint32))
    learner = jax.tree.map(jnp.asarray, checkpoint.arrange(arrays, like, path, prefix))
    return _Learned(metadata["step"], learner, reward_min, History.read(folder, metadata))


def _load_best(of: task.Task, folder: Path) -> _Learned:
    """The best network of a run, with the rows up to it. The rest of the learner is as at the start, and not used."""
    found = best_networks.read(of, folder)
    learner = of.program.init_learner(np.uint32(of.seed))._replace(online=jax.tree.map(jnp.asarray, found.network))
    rows = tables.read_first(folder / "metrics.csv", math.inf, found.step, lenient=True)
    return _Learned(found.step, learner, found.reward_min, History(rows), goes_on=False)


def _whole(name: str, value: Any, least: int) -> int:
    try:
        is_whole = not isinstance(value, bool) and int(value) == value and value >= least
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return int(value)


def _converted(observation: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Of the type that the network was trained on. An image in [0, 1] in place of one in 0..255 would become black."""
    if observation.dtype.kind not in "fiub" or (observation.dtype.kind == "f" and not np.isfinite(observation).all()):
        raise ValueError("the observation has an entry that is not a finite number")
    converted = observation.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(converted, observation):
        raise ValueError(f"the observation is {observation.dtype}, and not all of it can be {dtype}, as required")
    return converted
