"""Keeps learning and acting in step: how many samples the learner has drawn per inserted transition.

    |sampled - samples_per_insert * (inserted - warm-up)| <= tolerance

A learner that is ahead waits for the actors, so that a fast one does not wear out the replay. Actors that are ahead may
be made to wait too. The tolerance is at least what one call of either side adds, so both never wait at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RateLimiter:
    """Counts since the start of the run."""

    samples_per_insert: float
    warmup: int
    tolerance: float
    actors_wait: bool = True
    inserted: int = 0
    sampled: int = 0

    @property
    def wanted(self) -> float:
        """The number of samples that fits what was inserted."""
        return self.samples_per_insert * max(self.inserted - self.warmup, 0)

    def may_sample(self, count: int) -> bool:
        """Whether the learner may draw so many."""
        return self.inserted > self.warmup and self.sampled + count <= self.wanted + self.tolerance

    def may_insert(self) -> bool:
        """Whether actors may go on."""
        return not self.actors_wait or self.sampled >= self.wanted - self.tolerance

    def is_behind(self, count: int) -> bool:
        """Whether so many samples are still missing."""
        return self.sampled + count <= self.wanted
