"""How arguments are written on the command line: counts, overrides, lists of values."""

from __future__ import annotations

import contextlib
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


def _count(unless_given: str) -> Any:
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda arguments: whole_number(arguments[0]),
        is_instance=lambda value: value is None or isinstance(value, int),
        str_from_instance=lambda value: [unless_given if value is None else str(value)],
    )


Steps = Annotated[int | None, _count("the paper's")]
AtStep = Annotated[int | None, _count("the end")]
Override = Annotated[
    tuple[str, Any],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="NAME=VALUE",
        instance_from_str=lambda arguments: override(arguments[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [f"{value[0]}={value[1]}"],
    ),
]
Overrides = Annotated[
    tuple[Override, ...],
    tyro.conf.arg(
        name="set",
        help="Other settings, or numbers of the operator, such as learning_rate=0.0001 double=true clip_ratio=0.9; "
        "alpha, clip_ratio and temperature may change over training: clip_ratio=0.9:0.5:1e6.",
    ),
]
Variation = Annotated[
    tuple[str, tuple[Any, ...]],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="NAME=VALUE,VALUE",
        instance_from_str=lambda arguments: variation(arguments[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [f"{value[0]}={','.join(map(str, value[1]))}"],
    ),
]
Variations = Annotated[
    tuple[Variation, ...],
    tyro.conf.arg(
        name="vary",
        help="Numbers of the operator, or settings, to try several values of: clip_ratio=.7,.8,.9 alpha=.8,.9 makes "
        "every combination. An algorithm without the number is run as it is.",
    ),
]
Algorithms = Annotated[
    tuple[str, ...],
    tyro.conf.arg(name="algos", metavar="NAME [NAME ...]", help=f"Of: {', '.join(operator_names())}."),
]
Operators = Annotated[
    tuple[str, ...],
    tyro.conf.arg(metavar="NAME [NAME ...]", help=f"Which operators to run, of: {', '.join(operator_names())}."),
]
