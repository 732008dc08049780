"""What all parts of the driver share: the run, its state, the limiter, and Ray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from actiongap.training import one_core
from actiongap.training.apex.limiter import RateLimiter
from actiongap.training.apex.members import Calls
from actiongap.training.apex.settings import ApexSettings
from actiongap.training.apex.state import State
from actiongap.training.journal import Journal
from actiongap.training.task import Task


@dataclass
class Context:
    """One run of the driver, until step `stop`."""

    ray: Any
    task: Task
    apex: ApexSettings
    state: State
    stop: int
    journal: Journal
    limiter: RateLimiter
    calls: Calls
    shared_task: Any
    """The task in Ray's object store."""

    def remote(self, kind: type, num_cpus: int, here: bool = False) -> Any:
        """The class as one of Ray's actors, which this run starts again by itself where it must."""
        options: dict[str, Any] = {
            "num_cpus": num_cpus,
            "max_restarts": 0,
            "runtime_env": {"env_vars": {"JAX_PLATFORMS": "cpu", **one_core.variables()}},
        }
        if here:
            node = self.ray.get_runtime_context().get_node_id()
            strategies = self.ray.util.scheduling_strategies
            options["scheduling_strategy"] = strategies.NodeAffinitySchedulingStrategy(node, soft=True)
        return self.ray.remote(**options)(kind)

    def seed(self, purpose: int, number: int, life: int) -> list[int]:
        """The seed of a process: another for each start of the run, and for each life."""
        return [self.task.seed, purpose, number, self.state.starts, life]
