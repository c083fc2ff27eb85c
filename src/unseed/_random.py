"""One seed, many named and independent streams of random numbers.

A stream depends on the seed and its name alone, never on the order of use, the number of jobs or the device, so the
fifth bootstrap replicate is the same whether it is drawn first, last or by another process.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Streams:
    """Independent generators that share one seed.

    Examples
    --------
    >>> streams = Streams(seed=7)
    >>> bool(streams.generator("resample", 3).random() == streams.generator("resample", 3).random())
    True
    >>> bool(streams.generator("resample", 3).random() == streams.generator("resample", 4).random())
    False
    """

    seed: int

    @classmethod
    def from_random_state(cls, random_state: RandomState) -> "Streams":
        """Follow scikit-learn: an int is the seed itself, anything else is asked for one."""
        if isinstance(random_state, (int, np.integer)) and random_state >= 0:
            return cls(int(random_state))
        return cls(int(check_random_state(random_state).randint(np.iinfo(np.int32).max)))

    def generator(self, *name: str | int) -> np.random.Generator:
        """Generator of the stream called ``name``."""
        words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in name]
        return np.random.default_rng(np.random.SeedSequence(entropy=self.seed, spawn_key=tuple(words)))
