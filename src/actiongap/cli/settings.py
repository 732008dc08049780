"""The settings on the command line: their names, defaults and meaning."""

from __future__ import annotations

from typing import Annotated

import tyro
from rich.table import Table

from actiongap.cli.tables import print_table


def settings(
    environment: Annotated[str | None, tyro.conf.Positional] = None,
    preset: str | None = None,
) -> None:
    """List every training setting with its value, where the value comes from, and what it means.

    Args:
        environment: A name, such as pixelcopter or ALE/Gopher-v5; by default one that is not in the paper.
        preset: Show this preset instead, such as atari_dqn; `--set preset=NAME` trains with it.
    """
    from actiongap import envs
    from actiongap.learning import settings as all_settings

    if environment is not None:
        envs.refuse_unknown(environment)
    rows = all_settings.describe(environment, preset)
    shown = preset or all_settings.preset_of(environment)
    table = Table(title=f"{environment or 'any other environment'}: the preset {shown}", title_justify="left")
    for heading in ("name", "value", "source", "meaning"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.name, _short(row.value), row.source, row.meaning)
    print_table(table)
    print(f"Presets: {', '.join(all_settings.PRESETS)}.")


def _short(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
