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
from functools import cache

import torch
from torch import Tensor

from unseed._expectations import _angles as angles
from unseed._expectations._angles import CLOSE_SINE, first_layer_angles
from unseed._expectations._scratch import TILE_NUMBERS, Scratch, borrowed_scratch
from unseed._threads import on_all_cores, one_thread

_MOST_ROWS, _TILE_ROWS = 2048, 256  # at a time, for a thread to do before it needs Python again
_ROWS = 64  # at a time, where nobody waits for Python in between: their pairs stay in the cache of a core


def arc_product(
    left: Tensor, variance: Tensor, right: Tensor, other_variance: Tensor, columns: Tensor, w2: float, b2: float
) -> Tensor | None:
    """Θ(left, right) @ columns, or None where arcsin is not the fastest way to the formula. Shape (n, n_columns)."""
    if not (angles.HAS_FAST_ARCS and columns.device.type == "cpu" and columns.dtype == torch.float64):
        return None
    scaled = columns * (w2 / math.pi * other_variance.sqrt())[:, None]
    with one_thread():
        linear, constant = math.pi * (right.T @ scaled), b2 * columns.sum(0)
    times = _by_torch if angles.MKL_IS_FAST else _by_numpy
    height = min(_MOST_ROWS, _ROWS * -(-len(left) // (16 * _ROWS))) if angles.MKL_IS_FAST else _TILE_ROWS
    parts = list(zip(*(torch.split(of_points, TILE_NUMBERS // _TILE_ROWS) for of_points in (right, scaled)), strict=True))
    result = columns.new_empty(len(left), columns.shape[1])

    def fill(start: int) -> None:
        rows = slice(start, start + height)
        total = left[rows] @ linear
        with borrowed_scratch() as scratch:
            for there, values in parts:
                total += times(left[rows], there, values, scratch)
                scratch.keep_only()
        result[rows] = total.mul_(variance[rows].sqrt()[:, None]).add_(constant)

    on_all_cores(fill, range(0, len(left), height), columns.device)
    return result


def _by_numpy(left: Tensor, right: Tensor, columns: Tensor, scratch: Scratch) -> Tensor:
    found = first_layer_angles(left, right, scratch)
    pairs = found.sine.addcmul_(found.complement(scratch), found.cosine, value=2.0)
    return torch.from_numpy(pairs.numpy() @ columns.numpy())


def _by_torch(left: Tensor, right: Tensor, columns: Tensor, scratch: Scratch) -> Tensor:
    buffers = [scratch.take(left, (_ROWS, len(right))) for _ in range(3)]
    return _without_python()(left, right, columns, buffers, CLOSE_SINE)


@cache
def _without_python() -> Callable[..., Tensor]:
    """`pairs_times` as one call that leaves Python, so that threads do not wait for each other after every operation.

    torch calls its compiler of scripts outdated. Without it the function itself does the same, more slowly.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(pairs_times)
    except (AttributeError, RuntimeError, NotImplementedError):
        return pairs_times


def pairs_times(left: Tensor, right: Tensor, columns: Tensor, buffers: list[Tensor], close_sine: float) -> Tensor:
    """(√(1 − c²) + 2 c arcsin c) @ columns for c = left rightᵀ, a few rows at a time. Shape (n, n_columns).

    Nearly parallel and opposite pairs have their angles from differences of coordinates, as in `first_layer_angles`.
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
