"""Those who take part in a run, through all of their processes, and the calls to them that are in flight.

A call has a function for its result and one for its failure. A member whose process is gone, or whose method raised, is
given a new process; one that fails more than `max_restarts` times in a row stops the run with its error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FORGIVEN_AFTER = 100
"""So many good calls after a failure, and it counts no more."""


class MemberFailedError(RuntimeError):
    """An actor, a shard or the evaluator failed again and again."""


@dataclass(eq=False)
class Member:
    """An actor, a shard or the evaluator. `create` starts its n-th process, on Ray."""

    name: str
    create: Callable[[int], Any]
    handle: Any = None
    life: int = 0
    """How many processes it has had; a failure of an earlier one is no news."""
    is_ready: bool = False
    process: int = 0
    busy: bool = False
    size: int = 0
    strikes: int = 0
    successes: int = 0


class Calls:
    """The calls in flight."""

    def __init__(self, ray: Any, max_restarts: int, started: Callable[[Member], None], note: Callable[[str], None]):
        """`started` is told of every new process, before anything else is asked of it."""
        self._ray, self._max_restarts, self._started, self._note = ray, max_restarts, started, note
        self._pending: dict[Any, tuple[Member, int, Callable[[Any], None], Callable[[], None] | None]] = {}

    def start(self, member: Member) -> None:
        """Give the member a new process. It is ready once that answers."""
        member.life += 1
        member.is_ready, member.busy, member.size, member.successes = False, False, 0, 0
        member.handle = member.create(member.life)
        self._started(member)

        def answered(process: int) -> None:
            member.is_ready, member.process = True, process

        self.add(member, member.handle.process.remote(), answered)

    def add(
        self, member: Member, reference: Any, then: Callable[[Any], None], lost: Callable[[], None] | None = None
    ) -> None:
        """Do `then` with the result when it is there, or `lost` if it never will be."""
        self._pending[reference] = member, member.life, then, lost

    def handle(self, wait: bool) -> None:
        """Handle all results that are there; if asked to, wait a moment for one."""
        references = list(self._pending)
        if not references:
            return
        ready, _ = self._ray.wait(
            references, num_returns=1 if wait else len(references), timeout=0.1 if wait else 0, fetch_local=False
        )
        for reference in ready:
            member, life, then, lost = self._pending.pop(reference)
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                if lost is not None:
                    lost()
                if life == member.life:
                    self._failed(member, error)
            else:
                member.successes += 1
                if member.successes >= _FORGIVEN_AFTER:
                    member.strikes = 0
                then(result)

    def _failed(self, member: Member, error: Exception) -> None:
        exceptions = self._ray.exceptions
        cause = error.cause if isinstance(error, exceptions.RayTaskError) else error
        if isinstance(cause, exceptions.ObjectLostError):
            # What a lost node had in its memory; the member itself is well.
            member.busy = False
            self._note(f"what {member.name} was sent is lost with a node")
            return
        lines = str(cause).strip().splitlines() or [""]
        # Where the constructor failed, the error itself is at the end.
        reason = lines[-1] if getattr(cause, "actor_init_failed", False) else f"{type(cause).__name__}: {lines[0]}"
        member.strikes += 1
        if member.strikes > self._max_restarts:
            raise MemberFailedError(
                f"{member.name} failed {member.strikes} times, the last time by {reason}"
            ) from cause
        self._note(f"{member.name} failed ({reason}); it is started again")
        self._ray.kill(member.handle, no_restart=True)
        self.start(member)
