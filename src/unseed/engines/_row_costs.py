"""What rows take that are summed up in spaces of landmarks, and a network on all of them around which that is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unseed._machine import gigabytes
from unseed._resampling import HashedPlan
from unseed._solvers import Work
from unseed.engines._cost import Cost, Memory, whitening
from unseed.engines._landmarks import KEPT_ROWS
from unseed.engines._row_sums import ROWS_AT_A_TIME

_BYTES = 8  # float64
_OF_A_SQUARE = 5 / 8  # the lower triangle, by strips
_EASY_ITERATIONS = 2
"""And one for each digit. 1 to 9 were counted to a residual of 1e-3, 37 where there was hardly any noise; 2 to 17 to 1e-6."""

_COLUMNS = 120  # right-hand sides beside the labels, about: probes of the posterior
_EVALUATIONS_OF_EVIDENCE = 40  # a dozen steps, each a factorisation and an inverse


def landmark_cost(n_rows: int, plan: HashedPlan, sizes: Sequence[int], *, searches: bool) -> Cost:
    """Features of every row in spaces of so many landmarks, their sums, and systems in these spaces.

    ``searches`` says whether amplitudes are looked for by the evidence.
    """
    p, summands = sum(sizes), np.count_nonzero(plan.weights(0, ROWS_AT_A_TIME), axis=1) / ROWS_AT_A_TIME

    def features(points: int) -> list[Work]:
        return [work for m in sizes for work in (Work("pair", (points, m)), whitening(points, m))]

    choosing = [work for m in sizes for work in (Work("gram", (2 * m,)), Work("factorisation", (2 * m,)))]
    systems = plan.n_replicates + (_EVALUATIONS_OF_EVIDENCE if searches else 1)
    added = Work("multiplication", (n_rows, p, p), _OF_A_SQUARE * float(summands.sum()))
    return Cost(
        [Work("row", (n_rows,)), *choosing, *features(n_rows), added, Work("factorisation", (p,), systems)],
        lambda points: [Work("row", (points,)), *(Work("entry", (m, points)) for m in sizes)],
        landmark_memory(n_rows, len(summands), sizes),
        influence=lambda points: [*features(points + KEPT_ROWS), Work("multiplication", (points, p, p + KEPT_ROWS))],
        posterior=lambda points, checked: [*features(points + KEPT_ROWS), whitening(points + KEPT_ROWS, p)],
    )


def landmark_memory(n_rows: int, n_summands: int, sizes: Sequence[int]) -> Memory:
    """Of the sums before and after a piece, the systems made of them, a piece's features, and the kernel of the candidates."""

    def needed(sizes: Sequence[int]) -> int:
        p = sum(sizes)
        return _BYTES * ((2 * n_summands + 4) * p**2 + 3 * ROWS_AT_A_TIME * p + 2 * (2 * max(sizes)) ** 2)

    def fewer(available: int) -> str:
        count = max(sizes)
        while count > 2 and needed([count] * len(sizes)) > available / 2:
            count //= 2
        return f"solver=Landmarks(count={count}) needs {gigabytes(needed([count] * len(sizes)))}"

    return Memory(needed(sizes), f"{n_rows:,} rows in spaces of {sum(sizes):,} landmarks need {{}}", fewer)


def all_rows_cost(landmarks: Cost, n_rows: int, n_outputs: int, sizes: Sequence[int], tolerance: float) -> Cost:
    """Beside the sums: a pass over all pairs of rows for every iteration, three beside them, and one for every prediction."""
    n, columns = n_rows, n_outputs + _COLUMNS
    iterations = _EASY_ITERATIONS + max(1, math.ceil(math.log10(1 / tolerance)))
    passes = [
        work
        for m in sizes
        for work in (
            Work("solvers.symmetric", (n, n), 0.5, "solver='all_rows'"),
            Work("multiplication", (n, n, columns)),
            Work("entry", (n, m), 2),
            Work("multiplication", (n, m, columns), 2),
        )
    ]

    def predicting(points: int) -> list[Work]:
        return [*landmarks.predicting(points), *(Work("entry", (points, n)) for _ in sizes)]

    held = landmarks.memory.needed() + _BYTES * 6 * n * columns
    memory = replace(
        landmarks.memory, bytes=held, words=f"{n:,} rows with {columns:,} right-hand sides need {{}}", remedy=_summing
    )
    fitting = [*landmarks.fitting, *((iterations + 3) * work for work in passes)]
    assumed = f"{iterations} iterations find the network on all rows"
    return replace(landmarks, fitting=fitting, predicting=predicting, memory=memory, assumed=assumed)


def _summing(available: int) -> str:
    return "use solver='landmarks', which holds no rows"
