"""The members of a run, through all of their processes, and the calls to them in flight.

A call has a function for its result and one for its failure. A member whose process is gone, whose method raised, or
that did not answer in time, is given a new process; one that fails more than `max_restarts` times in a row stops the
run with its error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from actiongap.training import ray_cluster

_FORGIVEN_AFTER = 100
"""So many good calls after a failure, and it counts no more."""
_NOTED_AFTER_S = 60.0
"""A member that has not answered for so long is named."""
_CHECK_S = 1.0


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
    noted: bool = False
    """That it does not answer was said."""


class _Call(NamedTuple):
    member: Member
    life: int
    then: Callable[[Any], None]
    lost: Callable[[], None] | None
    began: float


class Calls:
    """The calls in flight."""

    def __init__(
        self,
        ray: Any,
        max_restarts: int,
        limit_s: float,
        started: Callable[[Member], None],
        note: Callable[[str], None],
    ) -> None:
        """`started` is called with every new process, before any other call to it. A limit of 0 is none."""
        self._ray, self._max_restarts, self._limit_s = ray, max_restarts, limit_s
        self._started, self._note = started, note
        self._pending: dict[Any, _Call] = {}
        self._checked_at = time.monotonic()

    def start(self, member: Member) -> None:
        """Give the member a new process. It is ready once that answers."""
        member.life += 1
        member.is_ready, member.busy, member.size, member.successes, member.noted = False, False, 0, 0, False
        member.handle = member.create(member.life)
        self._started(member)

        def answered(process: int) -> None:
            member.is_ready, member.process = True, process

        self.add(member, member.handle.process.remote(), answered)

    def add(
        self, member: Member, reference: Any, then: Callable[[Any], None], lost: Callable[[], None] | None = None
    ) -> None:
        """Do `then` with the result when it is there, or `lost` if it never will be."""
        self._pending[reference] = _Call(member, member.life, then, lost, time.monotonic())

    def handle(self, wait: bool) -> None:
        """Handle all results that are there; if asked to, wait a moment for one."""
        ray_cluster.refuse_loss()
        self._check_time()
        references = list(self._pending)
        if not references:
            return
        ready, _ = self._ray.wait(
            references, num_returns=1 if wait else len(references), timeout=0.1 if wait else 0, fetch_local=False
        )
        for reference in ready:
            # Before every one, since the last may have taken its time: a call into an object store that is gone ends
            # this process.
            ray_cluster.refuse_loss()
            call = self._pending.pop(reference)
            member = call.member
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                if call.lost is not None:
                    call.lost()
                if call.life == member.life:
                    self._failed(member, error)
            else:
                member.successes += 1
                member.noted = False
                if member.successes >= _FORGIVEN_AFTER:
                    member.strikes = 0
                call.then(result)

    def _check_time(self) -> None:
        """Name who does not answer; after the limit, that is a failure like any other."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_S:
            return
        self._checked_at = now
        for reference, call in list(self._pending.items()):
            waited, member = now - call.began, call.member
            if call.life != member.life or reference not in self._pending:
                continue
            if self._limit_s and waited > self._limit_s:
                for other, its in list(self._pending.items()):
                    if its.member is member:
                        del self._pending[other]
                        if its.lost is not None:
                            its.lost()
                self._failed(member, TimeoutError(f"no answer for {waited:.0f} s"))
            elif waited > _NOTED_AFTER_S and not member.noted:
                member.noted = True
                limit = f"; at {self._limit_s:.0f} s it is restarted" if self._limit_s else ""
                self._note(f"{member.name} has not answered for {waited:.0f} s{limit}")

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
            raise MemberFailedError(f"{member.name} failed {member.strikes} times, the last time: {reason}") from cause
        self._note(f"{member.name} failed ({reason}); it is restarted")
        self._ray.kill(member.handle, no_restart=True)
        self.start(member)
