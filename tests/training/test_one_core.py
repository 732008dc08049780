"""What keeps another process to one core."""

from __future__ import annotations

import pytest

from actiongap.training import one_core

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (None, ONE_THREAD),
        ("--xla_dump_to=x", f"--xla_dump_to=x {ONE_THREAD}"),
        (f"{ONE_THREAD} --xla_dump_to=x", f"{ONE_THREAD} --xla_dump_to=x"),
    ],
)
def test_the_flags_of_this_process_are_kept_and_stand_once(
    here: str | None, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if here is not None:
        monkeypatch.setenv("XLA_FLAGS", here)
    assert one_core.variables() == {"OMP_NUM_THREADS": "1", "NPROC": "1", "XLA_FLAGS": there}
    assert (
        one_core.environment_variables() | {"SOMETHING": "else"} | one_core.variables()
        == one_core.environment_variables()
    )
