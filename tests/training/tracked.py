"""What the trackers' packages have kept, read from their files: {step: {name: value}}."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Rows = dict[int, dict[str, float]]


def tensorboard(folder: Path) -> list[tuple[int, Rows]]:
    """For each file of events, the oldest first: the step from which it replaces older ones, and its rows."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.glob("events*")):
        content, place, start, rows = path.read_bytes(), 0, -1, Rows()
        while place < len(content):  # a record: its length, a checksum of that, itself, a checksum
            (length,) = struct.unpack_from("<Q", content, place)
            event = Event.FromString(content[place + 12 : place + 12 + length])
            if event.session_log.status == event.session_log.START:
                start = event.step
            for value in event.summary.value:
                rows.setdefault(event.step, {})[value.tag] = value.simple_value
            place += length + 16
        found.append((start, rows))
    return found


def wandb(folder: Path) -> list[tuple[Any, Rows]]:
    """For each time that the run was begun or taken up: what it is, and its rows."""
    from wandb.proto.wandb_internal_pb2 import Record

    found = []
    for path in sorted(folder.glob("offline-run-*/*.wandb")):
        run, rows = None, Rows()
        for content in _records(path.read_bytes()):
            record = Record.FromString(content)
            if record.WhichOneof("record_type") == "run":
                run = record.run
            elif record.WhichOneof("record_type") == "history":
                cells = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                rows[cells["_step"]] = {name: value for name, value in cells.items() if not name.startswith("_")}
        found.append((run, rows))
    return found


def _records(content: bytes) -> Iterator[bytes]:
    """Those of a log of LevelDB's form: blocks of 32 KiB, in which parts have a checksum, a length and a kind."""
    place, parts = 7, b""
    while place + 7 <= len(content):
        if 32_768 - place % 32_768 < 7:
            place += 32_768 - place % 32_768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        part = content[place + 7 : place + 7 + length]
        parts = part if kind in (1, 2) else parts + part
        if kind in (1, 4):
            yield parts
        place += 7 + length
