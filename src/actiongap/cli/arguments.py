"""How arguments are written on the command line: counts, overrides, lists of values."""

from __future__ import annotations

import contextlib
import types
import typing
from pathlib import Path
from typing import Annotated, Any

import tyro

from actiongap.operators import names as operator_names


def whole_number(text: str) -> int:
    """A count as people write it: 200000, 200_000 or 2e5."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(f"{text} is not a whole number")
    return int(number)


def override(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as a number or a switch if it is one."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise ValueError(f"{text!r} is not of the form NAME=VALUE, such as learning_rate=0.0001")
    if ":" in value:  # a schedule, START:END:STEPS
        return name, tuple(_value(part) for part in value.split(":"))
    return name, _value(value)


def variation(text: str) -> tuple[str, tuple[Any, ...]]:
    """NAME=VALUE,VALUE,..."""
    name, separator, values = text.partition("=")
    if not (name and separator and values and all(values.split(","))):
        raise ValueError(f"{text!r} is not of the form NAME=VALUE,VALUE, such as clip_ratio=.7,.8,.9")
    return name, tuple(override(f"{name}={value}")[1] for value in values.split(","))


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


_UNSET = "unset"
"""How help shows that an argument is left out by default; its own text says what happens then."""

REGISTRY = tyro.constructors.ConstructorRegistry()


@REGISTRY.primitive_rule
def _optional(found: tyro.constructors.PrimitiveTypeInfo) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
    """A value that may be left out, but not given as the word None: `--out PATH`."""
    kinds = typing.get_args(found.type)
    if found.type_origin not in (types.UnionType, typing.Union) or len(kinds) != 2 or types.NoneType not in kinds:
        return None
    kind = next(kind for kind in kinds if kind is not types.NoneType)
    if kind not in (int, float, str, Path):
        return None
    return _one_value(kind, kind, kind.__name__.upper())


def _one_value(kind: type, parse: Any, metavar: str) -> tyro.constructors.PrimitiveConstructorSpec[Any]:
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda arguments: parse(arguments[0]),
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: [_UNSET if value is None else str(value)],
    )


_COUNT = _one_value(int, whole_number, "STEPS")
Count = Annotated[int, _COUNT]
Steps = Annotated[int | None, _COUNT]
AtStep = Steps
Override = Annotated[tuple[str, Any], _one_value(tuple, override, "NAME=VALUE")]
Overrides = Annotated[
    tuple[Override, ...],
    tyro.conf.arg(
        name="set",
        help="Settings, or numbers of the operator, such as learning_rate=0.0001 double=true clip_ratio=0.9; "
        "alpha, clip_ratio and temperature may change over training: clip_ratio=0.9:0.5:1e6.",
    ),
]
Variation = Annotated[tuple[str, tuple[Any, ...]], _one_value(tuple, variation, "NAME=VALUE,VALUE")]
Variations = Annotated[
    tuple[Variation, ...],
    tyro.conf.arg(
        name="vary",
        help="Numbers of the operator, or settings, to vary: clip_ratio=.7,.8,.9 alpha=.8,.9 makes "
        "every combination. An algorithm without that number is run once.",
    ),
]
Callbacks = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="NAME [NAME ...]",
        help="Callbacks that receive each row: trackers (tensorboard, wandb, mlflow; each needs its own extra), "
        "or your own, module:attribute, which makes a callback from the run's folder.",
    ),
]
Algorithms = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        name="algos",
        metavar="NAME [NAME ...]",
        help=f"Any of: {', '.join(operator_names())}; or your own, module:function.",
    ),
]
ExactAlgorithms = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        name="algos",
        aliases=["--operators"],
        metavar="NAME [NAME ...]",
        help=f"Any of: {', '.join(operator_names())}.",
    ),
]
