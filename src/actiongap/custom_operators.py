"""Custom operators: a function of a row of action values, with its numbers as arguments.

    target   y = r + discount v(q') + g(q)_a

    def soft_gate(q, value, *, alpha=0.9, width=1.0):            # g: [..., A], [...] -> [..., A]
        advantage = q - value[..., None]
        return alpha * advantage / (1 + (advantage / width) ** 2)

    custom(soft_gate, width=2.0)

`custom` turns it into an operator like those of the family: an agent learns with it, `iterate` applies it, and its
numbers are data, traced and scheduled like theirs. It is a named tuple of its numbers, so JAX needs no registration.
A run stores the function's name, `module:function`, and imports it by that name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import os
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from array_api_compat import array_namespace

from actiongap import operators
from actiongap.arrays import Array, check_rows, is_concrete, shape_of
from actiongap.operators import FAMILY, Operator

Function = Callable[..., Array]
_GIVEN = {"gap_term": ("q", "value"), "value": ("q",), "kept": ("q", "value")}
"""What each function takes before its numbers."""


class NotImportableError(ValueError):
    """A name that leads to no operator here."""


class Functions(NamedTuple):
    """The functions of a custom operator."""

    gap_term: Function
    value: Function | None = None
    kept: Function | None = None

    def names(self) -> dict[str, str]:
        """`module:function` of each that there is."""
        return {role: name_of(each) for role, each in self._asdict().items() if each is not None}


class CustomOperator:
    """A custom operator without its numbers. `custom` makes a class for each, a named tuple of the numbers."""

    __slots__ = ()
    name: ClassVar[str]
    functions: ClassVar[Functions]
    # What the family's formula asks for. A number of the same name comes before it.
    alpha, temperature, persistent = math.nan, 0.0, False
    target, join, apply = Operator.target, Operator.join, Operator.apply

    def replace(self, **changes: Any) -> Operator:
        """A copy with some numbers changed."""
        fields = self._fields  # type: ignore[attr-defined]
        for name, value in changes.items():
            if name not in fields:
                raise ValueError(f"{self.name} has no number {name!r}; it has: {', '.join(fields) or 'none'}")
            changes[name] = _number(self.name, name, value)
        return self._replace(**changes)  # type: ignore[attr-defined]

    def value(self, q: Array) -> Array:
        """The state value: [..., A] -> [...]; the largest entry where there is no function for it."""
        check_rows("q", q)
        if self.functions.value is None:
            return array_namespace(q).max(q, axis=-1)
        return self._checked("value", self._call("value", q), shape_of(q)[:-1])

    def gap_term(self, q: Array, value: Array | None = None, *, scale: Array | float | None = None) -> Array:
        """What is added to the target of each action: [..., A] -> [..., A]."""
        check_rows("q", q)
        more = (
            {"scale": math.inf if scale is None else scale} if "scale" in _parameters(self.functions.gap_term) else {}
        )
        term = self._call("gap_term", q, self.value(q) if value is None else value, **more)
        return self._checked("gap_term", term, shape_of(q))

    def kept(self, q: Array) -> Array:
        """Where a gap term is added: where it is not 0, or where the function for it says so. -> bool [..., A]."""
        if self.functions.kept is None:
            return self.gap_term(q) != 0
        return self._checked("kept", self._call("kept", q, self.value(q)), shape_of(q))

    def capped(self, q: Array, *, scale: Array | float | None = None) -> Array:
        """Nowhere: limiting the term is left to the function. -> bool [..., A]."""
        return array_namespace(q).zeros_like(self.kept(q))

    def __reduce__(self) -> Any:
        return _make, (self.functions, self.name, tuple(self))  # type: ignore[arg-type]

    def _call(self, role: str, *given: Array, **more: Any) -> Array:
        function = getattr(self.functions, role)
        own = [name for name in _parameters(function)[len(given) :] if name not in more]
        return function(*given, **{name: getattr(self, name) for name in own}, **more)

    def _checked(self, role: str, result: Array, wanted: tuple[int, ...]) -> Array:
        if shape_of(result) != wanted:
            name = name_of(getattr(self.functions, role))
            raise ValueError(f"{name} gave shape {shape_of(result)}; as {role} of such rows it must be {wanted}")
        return result


def custom(
    gap_term: Function, *, value: Function | None = None, kept: Function | None = None, **numbers: Any
) -> Operator:
    """The operator whose gap term is this function of (q, value) and of its numbers, which follow as arguments.

    gap_term  [..., A], [...] -> [..., A]. With an argument `scale` it is given operators.gap_movement, too
    value     [..., A] -> [...], the state value v; by default the largest entry
    kept      [..., A], [...] -> bool [..., A]: what is counted as kept; by default where the gap term is not 0

    All three may have numbers, and share those of the same name. `numbers` changes their defaults.
    """
    if isinstance(gap_term, CustomOperator):
        return gap_term.replace(**numbers)
    functions = Functions(gap_term, value, kept)
    return _make(functions, name_of(gap_term), _defaults(functions, numbers))


def from_name(name: str) -> Operator:
    """The operator at `module:attribute`: a function, or what `custom` made. The name stays with it."""
    found = import_by_name(name)
    if isinstance(found, CustomOperator):
        return _make(found.functions, name, tuple(found))  # type: ignore[arg-type]
    if isinstance(found, Operator) or not callable(found):
        raise NotImportableError(f"{name} is {found!r}; it must be a function, or an operator made by operators.custom")
    functions = Functions(found)
    return _make(functions, name, _defaults(functions, {}))


def from_record(functions: Mapping[str, str], name: str, numbers: Mapping[str, Any]) -> Operator:
    """The operator that a run recorded: the names of its functions, its own name, its numbers."""
    found = Functions(**{role: _unwrapped(import_by_name(each)) for role, each in functions.items()})
    return with_numbers(_make(found, name, _defaults(found, dict(numbers))), numbers)


def with_numbers(operator: Operator, numbers: Mapping[str, Any]) -> Operator:
    """The operator with numbers as a run stores them: infinities as text."""
    kinds = {name: type(value) for name, value in operator._asdict().items()}
    if kinds.keys() != numbers.keys():
        raise ValueError(f"the run's operator has the numbers {', '.join(numbers)}; this one has {', '.join(kinds)}")
    return operator.replace(**{name: kinds[name](value) for name, value in numbers.items()})


def is_name(algorithm: Any) -> bool:
    """Whether this is `module:attribute`, and not the name of a member of the family."""
    return isinstance(algorithm, str) and ":" in algorithm


def parameters(algorithm: str) -> dict[str, float]:
    """The numbers of an algorithm that can be changed, with their defaults: of the family, or custom."""
    return from_name(algorithm)._asdict() if is_name(algorithm) else operators.parameters(algorithm)


def name_of(function: Any) -> str:
    """`module:function`."""
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def is_importable(functions: Functions) -> bool:
    """Whether another process can find the functions by their names."""
    try:
        return all(
            _unwrapped(import_by_name(name)) is getattr(functions, role) for role, name in functions.names().items()
        )
    except NotImportableError:
        return False


@functools.lru_cache(maxsize=256)
def _class(functions: Functions, name: str, fields: tuple[str, ...]) -> type:
    """One class for the same functions: compiled code is kept by it."""
    short = name.rpartition(":")[2].rpartition(".")[2]
    kind = namedtuple(short if short.isidentifier() else "custom", fields)  # type: ignore[misc]
    return type(kind.__name__, (kind, CustomOperator), {"__slots__": (), "name": name, "functions": functions})


def _make(functions: Functions, name: str, numbers: tuple[Any, ...] | Mapping[str, Any]) -> Operator:
    fields = tuple(_numbers(functions))
    values = numbers.values() if isinstance(numbers, Mapping) else numbers
    return cast(Operator, _class(functions, name, fields)(*values))


def _defaults(functions: Functions, given: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers with their defaults, or as given."""
    name, numbers = name_of(functions.gap_term), _numbers(functions)
    if name.rpartition(":")[2] in FAMILY:
        raise ValueError(f"{name} is the name of a built-in operator: rename the function")
    for number in given:
        if number not in numbers:
            raise ValueError(f"{name} has no number {number!r}; it has: {', '.join(numbers) or 'none'}")
    chosen = {number: given.get(number, default) for number, default in numbers.items()}
    missing = [number for number, value in chosen.items() if value is inspect.Parameter.empty]
    if missing:
        raise ValueError(
            f"{name} has no default for {', '.join(missing)}: pass a value, or write {missing[0]}=... in the function"
        )
    return {number: _number(name, number, value) for number, value in chosen.items()}


@functools.lru_cache(maxsize=256)
def _numbers(functions: Functions) -> dict[str, Any]:
    """The arguments of the functions that are numbers, with their defaults: by the first function that has one."""
    found: dict[str, Any] = {}
    for role, function in functions._asdict().items():
        if function is None:
            continue
        given, parameters = _GIVEN[role], _signature(function)
        if len(parameters) < len(given):
            raise ValueError(f"{name_of(function)} must take ({', '.join(given)}, and its numbers) as {role}")
        for parameter in list(parameters.values())[len(given) :]:
            name = parameter.name
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ValueError(f"{name_of(function)}: {name} must be a named argument: it is a number")
            if role == "gap_term" and name == "scale":
                continue
            if name.startswith("_") or name == "persistent" or (name not in _FAMILY and hasattr(CustomOperator, name)):
                raise ValueError(f"{name_of(function)}: no number can be called {name!r}; choose another name")
            if found.get(name, parameter.empty) is parameter.empty:
                found[name] = parameter.default
    return found


_FAMILY = Operator._fields


@functools.lru_cache(maxsize=256)
def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(_signature(function))


def _signature(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ValueError(f"{function!r} is not a function with a readable signature: write one in Python") from None


def _number(owner: str, name: str, value: Any) -> Any:
    if not is_concrete(value):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"{name} of {owner} is {value!r}; it must be a number")
    return number


def _unwrapped(found: Any) -> Any:
    """The function, also where its name now leads to the operator that was made of it."""
    return found.functions.gap_term if isinstance(found, CustomOperator) else found


def import_by_name(name: str) -> Any:
    """What is at `module:attribute`; looked for also where the program was started."""
    module, _, attribute = name.partition(":")
    if module == "__main__" or "<" in attribute or not (module and attribute):
        raise NotImportableError(f"{name} cannot be imported: put the function in its own module")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the command line looks where it was started, as `python` does
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        hint = f"start where {module.split('.')[0]} is, or set PYTHONPATH"
        raise NotImportableError(f"{name} cannot be imported ({error}): {hint}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotImportableError(f"{name} cannot be imported: {module} has no {attribute!r}")
        found = getattr(found, part)
    return found
