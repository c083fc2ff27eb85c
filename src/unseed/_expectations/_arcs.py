"""Products with the tangent kernel of one hidden ReLU layer, on a CPU, in half as many passes over the pairs.

With c = cos θ, and √q, √r the roots of the two points' variances,

    Θ = w²/π √q √r (sin θ + 2 (π − θ) cos θ) + b² = w²/π √q √r (√(1 − c²) + 2 c arcsin c + π c) + b².

In a product with columns, √q and √r belong to the result and to the columns. Neither do the last two terms need the pairs: π c
is an inner product of unit vectors, and b² sees the sum of a column only. Two functions of c are left. What that costs is a
digit where most pairs point away from each other: there the terms cancel.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from unseed._expectations import _geometry as geometry
from unseed._expectations._geometry import CLOSE_SINE, arcsine_of, first_layer_angles, first_layer_cosines
from unseed._expectations._scratch import Scratch

_MOST_ROWS = 2048
_ROWS = 64  # at a time, where nobody waits for Python in between: their pairs stay in the cache of a core


@dataclass(frozen=True)
class ArcProduct:
    """Points, and what the columns that belong to them are to every product."""

    directions: Tensor  # (m, d)
    scaled: Tensor  # (m, c)
    linear: Tensor  # (d, c)
    constant: Tensor  # (c,)

    @classmethod
    def of(cls, directions: Tensor, variance: Tensor, columns: Tensor, w2: float, b2: float) -> ArcProduct | None:
        """None where arcsin is not the fastest way to the formula."""
        if not (geometry.HAS_FAST_ARCS and columns.device.type == "cpu" and columns.dtype == torch.float64):
            return None
        scaled = columns * (w2 / math.pi * variance.sqrt())[:, None]
        return cls(directions, scaled, math.pi * (directions.T @ scaled), b2 * columns.sum(0))

    def rows_at_a_time(self, n_rows: int, tile_rows: int) -> int:
        """As many as leave Python together where torch does them; the same for any number of threads."""
        return min(_MOST_ROWS, _ROWS * -(-n_rows // (16 * _ROWS))) if geometry.MKL_IS_FAST else tile_rows

    def times(self, directions: Tensor, variance: Tensor, scratch: Scratch) -> Tensor:
        """Θ(left, points) @ columns. Shape (n, c)."""
        total = directions @ self.linear
        total += self._by_torch(directions, scratch) if geometry.MKL_IS_FAST else self._by_numpy(directions, scratch)
        return total.mul_(variance.sqrt()[:, None]).add_(self.constant)

    def _by_numpy(self, left: Tensor, scratch: Scratch) -> Tensor:
        cosine = first_layer_cosines(left, self.directions, scratch)
        angles = first_layer_angles(left, self.directions, cosine, scratch)
        pairs = angles.sine.addcmul_(arcsine_of(angles, scratch), angles.cosine, value=2.0)
        return torch.from_numpy(pairs.numpy() @ self.scaled.numpy())

    def _by_torch(self, left: Tensor, scratch: Scratch) -> Tensor:
        buffers = [scratch.take(self.scaled, (_ROWS, len(self.directions))) for _ in range(3)]
        return _without_python()(left, self.directions, self.scaled, buffers, CLOSE_SINE)


@cache
def _without_python() -> Callable[[Tensor, Tensor, Tensor, list[Tensor], float], Tensor]:
    """`pairs_times` as one call that leaves Python, so that threads do not wait for each other after every operation.

    torch calls its compiler of scripts outdated. Without it the function itself does the same, more slowly.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            compiled: Callable[[Tensor, Tensor, Tensor, list[Tensor], float], Tensor] = torch.jit.script(pairs_times)
    except (AttributeError, RuntimeError, NotImplementedError):
        return pairs_times
    return compiled


def pairs_times(left: Tensor, right: Tensor, columns: Tensor, buffers: list[Tensor], close_sine: float) -> Tensor:
    """(√(1 − c²) + 2 c arcsin c) @ columns for c = left rightᵀ, a few rows at a time. Shape (n, n_columns).

    Nearly parallel and opposite pairs have their angles from differences of coordinates, as in `geometry`.
    """
    result = torch.zeros([left.size(0), columns.size(1)], dtype=columns.dtype)
    one = torch.ones([], dtype=left.dtype)
    height = buffers[0].size(0)
    right_t = right.t().contiguous()
    for start in range(0, left.size(0), height):
        here = left[start : start + height]
        cosine, values, arcs = buffers[0][: here.size(0)], buffers[1][: here.size(0)], buffers[2][: here.size(0)]
        torch.mm(here, right_t, out=cosine)
        torch.addcmul(one, cosine, cosine, value=-1.0, out=values)
        if bool(values.amin() >= close_sine * close_sine):
            torch.sqrt(values, out=values)
            torch.asin(cosine, out=arcs)
            values.addcmul_(arcs, cosine, value=2.0)
        else:
            cosine.clamp_(-1.0, 1.0)
            torch.sqrt(values.clamp_min_(0.0), out=values)
            close = (values < close_sine).nonzero()
            torch.asin(cosine, out=arcs)
            values.addcmul_(arcs, cosine, value=2.0)
            for some in torch.split(close, max(1, 1048576 // max(1, left.size(1)))):
                i, j = some[:, 0], some[:, 1]
                of_pair = cosine[i, j]
                gap = (here[i] - of_pair.sign().unsqueeze(1) * right[j]).square().sum(1) / 2  # 1 - |cos θ|
                sine = (gap * (2.0 - gap)).clamp_min(0.0).sqrt()
                values[i, j] = sine + 2.0 * of_pair * (1.5707963267948966 - torch.atan2(sine, of_pair))
        torch.mm(values, columns, out=result[start : start + height])
    return result
