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
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)
            records.setdefault(key_of(record), record)
        return records

    def append(self, records: Iterable[Record]) -> None:
        """Write whole lines, one after the other, also when several processes do."""
        lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        with self._locked() as descriptor:
            self._cut_unfinished(descriptor)
            while lines:
                lines = lines[os.write(descriptor, lines) :]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)  # which gives the lock back

    def _cut_unfinished(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            whole = self.path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(descriptor, whole)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: one process at a time, then
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
