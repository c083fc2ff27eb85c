"""Records: one line of JSON for each repetition and method, appended as it comes.

A kill at any moment can leave at most one unfinished line at the end of the file, which the next run cuts off. Lines that
say the same thing twice, as after two runs at the same time, count once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseed.errors import InvalidInputError

Record = dict[str, Any]
Key = tuple[str, int, str]


def key_of(record: Record) -> Key:
    """Setting, repetition and method."""
    return record["setting"], record["repetition"], record["method"]


@dataclass(frozen=True)
class RecordFile:
    """Records of one experiment.

    Examples
    --------
    >>> import tempfile
    >>> file = RecordFile(Path(tempfile.mkdtemp()) / "records.jsonl")
    >>> file.append([{"setting": "a", "repetition": 0, "method": "m"}])
    >>> sorted(file.read())
    [('a', 0, 'm')]
    """

    path: Path

    def read(self) -> dict[Key, Record]:
        """All records, the first of each key; an unfinished last line is left out."""
        if not self.path.exists():
            return {}
        records: dict[Key, Record] = {}
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], 1):
            try:
                record = json.loads(line)
                records.setdefault(key_of(record), record)
            except (ValueError, KeyError, TypeError):
                raise InvalidInputError(f"{self.path}, line {number}, is not a record; remove that line") from None
        return records

    def append(self, records: Iterable[Record]) -> None:
        """Write whole lines, one after the other, also when several processes do."""
        lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        with self._locked() as descriptor:
            self._cut_unfinished(descriptor)
            while lines:
                lines = lines[os.write(descriptor, lines) :]

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other runs out for as long as this one lasts; the claim ends with the process, however it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _lock(descriptor, wait=False):
                raise InvalidInputError(f"another run is writing to {str(self.path)!r}; wait for it, or choose another --out")
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(descriptor, wait=True)
            yield descriptor
        finally:
            os.close(descriptor)  # which gives the lock back

    def _cut_unfinished(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        if not size:
            return
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            whole = self.path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(descriptor, whole)


def _lock(descriptor: int, *, wait: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # not on this system: one process at a time, then
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
