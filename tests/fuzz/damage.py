"""Damaged variants of a file: of its bytes, of its text, of the JSON in it, and of what lies in its place.

All chance comes from a `random.Random`, so that a case is known by its number. A variant is content for the file, or a
function that puts something else there.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Put = Callable[[Path], None]

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NUMBERS = (
    *(b"NaN", b"nan", b"inf", b"-inf", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e308", b"5e-324"),
    *(b"0", b"-0", b"-1", b"0.5", b"1e3", b"2147483648", b"9223372036854775808", b"-9223372036854775809"),
    *(b"1" + b"0" * 30, b"9" * 5000, b"0x10", b"1_000", b"\xef\xbc\x91", b"", b" 7", b"true", b"null", b'"7"', b"[]"),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 0.5, -0.0, 1e308, float("nan"), float("inf"), 10**30, 2**31, 2**63, 2**64),
    *("", "7", "nan", "inf", "by rule", "clip_al", "../../x", "[red]x[/red]", "\x1b[2J", "\u0000", "x" * 100_000),
    *([], {}, [1, 2, 3], [[]], {"a": 1}, [None], {"": None}),
)


class Variant(NamedTuple):
    """What was done, and how it is put in the file's place."""

    name: str
    put: Put


def variant(content: bytes, chance: random.Random) -> Variant:
    """One at random. JSON is damaged as JSON half of the time."""
    kinds = [*_BYTES.items(), *_BYTES.items(), *_TEXT.items()] + ([*_JSON.items()] * 3 if content[:1] == b"{" else [])
    if chance.random() < 0.05:
        name, put = chance.choice([*_PLACES.items()])
        return Variant(name, put)
    name, change = chance.choice(kinds)
    changed = change(content, chance)
    return Variant(name, lambda path: _write(path, changed))


def places() -> list[Variant]:
    """All that can lie in the place of a file."""
    return [Variant(name, put) for name, put in _PLACES.items()]


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _flip_bits(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    what = chance.choice([b"\0", b"\n", b",", b"\xff\xfe", b"\r\n", b"\xef\xbb\xbf", chance.randbytes(9), b"\x1b[31m"])
    return content[:at] + what + content[at:]


def _cut_out(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[min(end, start + 40) :]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] + content[end:]


def _zero(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + bytes(len(content) - start)


def _empty(content: bytes, chance: random.Random) -> bytes:
    return b""


def _noise(content: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice([1, 100, 5_000]))


def _swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _delete_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def _repeat_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def _windows_lines(content: bytes, chance: random.Random) -> bytes:
    return content.replace(b"\n", b"\r\n")


def _other_number(content: bytes, chance: random.Random) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content + chance.choice(_NUMBERS)
    place = chance.choice(found)
    return content[: place.start()] + chance.choice(_NUMBERS) + content[place.end() :]


def _other_digit(content: bytes, chance: random.Random) -> bytes:
    digits = [place for place, byte in enumerate(content) if 48 <= byte < 58]
    if not digits:
        return content
    at = chance.choice(digits)
    return content[:at] + str(chance.randrange(10)).encode() + content[at + 1 :]


def _delete_key(content: bytes, chance: random.Random) -> bytes:
    def change(parent: Any, key: Any) -> None:
        del parent[key]

    return _changed_json(content, chance, change)


def _other_value(content: bytes, chance: random.Random) -> bytes:
    def change(parent: Any, key: Any) -> None:
        parent[key] = chance.choice(_VALUES)

    return _changed_json(content, chance, change)


def _rename_key(content: bytes, chance: random.Random) -> bytes:
    def change(parent: Any, key: Any) -> None:
        if isinstance(parent, dict):
            parent[chance.choice(["", "x", f"{key}s", "__class__", "a" * 10_000])] = parent.pop(key)

    return _changed_json(content, chance, change)


def _nest(content: bytes, chance: random.Random) -> bytes:
    """A value inside of so many lists or objects that a parser runs out of stack."""
    depth = chance.choice([10, 1_000, 200_000])
    opened, closed = chance.choice([(b"[", b"]"), (b'{"a":', b"}")])
    inner = opened * depth + b"1" + closed * depth
    return chance.choice([inner, b'{"settings": ' + inner + b"}", content.rstrip(b"}\n") + b', "x": ' + inner + b"}"])


def _changed_json(content: bytes, chance: random.Random, change: Callable[[Any, Any], None]) -> bytes:
    loaded = json.loads(content)
    parent, key = chance.choice(list(_paths(loaded)))
    change(parent, key)
    return json.dumps(loaded, indent=2).encode()


def _paths(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _paths(inner)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _missing(path: Path) -> None:
    path.unlink()


_BYTES = {
    "flipped bits": _flip_bits,
    "truncated": _truncate,
    "inserted": _insert,
    "cut out": _cut_out,
    "repeated": _repeat,
    "zeros": _zero,
    "empty": _empty,
    "noise": _noise,
}
_TEXT = {
    "swapped lines": _swap_lines,
    "deleted line": _delete_line,
    "repeated line": _repeat_line,
    "Windows' ends of lines": _windows_lines,
    "another number": _other_number,
    "another digit": _other_digit,
}
_JSON = {"deleted key": _delete_key, "another value": _other_value, "renamed key": _rename_key, "nested": _nest}
_PLACES: dict[str, Put] = {
    "a folder": _folder,
    "a FIFO": _fifo,
    "a link to itself": _link_to_itself,
    "an endless device": _endless,
    "missing": _missing,
}
