"""Is the ground under us where a loss bends? What Newton's steps left, and what rows left out say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from unseed._findings import Diagnosis, Finding
from unseed._predictors import PNCReplicates, chunks
from unseed._results import FloatArray
from unseed._told import telling_once
from unseed.engines import NewPoints, Probe
from unseed.errors import InvalidInputError


@telling_once
def diagnose_bent(replicates: PNCReplicates, probe: FloatArray, X: FloatArray | None = None) -> Diagnosis:
    """Collect the findings; new points X may be far from all rows."""
    points = NewPoints(replicates.inputs(probe))
    findings = list(replicates.trained.conditions(Probe(points, lambda differences: float(differences.abs().mean()))))
    if X is not None and not replicates.has_posterior:
        raise InvalidInputError("diagnose(X) needs a network on all rows, and this interval has none; use interval='truth'")
    if not replicates.has_posterior:
        return Diagnosis(tuple(findings))
    findings += _left_out(replicates)
    far: tuple[int, ...] = ()
    if X is not None:
        limit = replicates.left_out.variance.max(axis=0)
        pieces = chunks(X, replicates.trained.numbers_per_point)
        variances = np.concatenate([replicates.at(piece).posterior_variance(piece) for piece in pieces])
        far = tuple(np.flatnonzero((variances > limit).any(axis=1)).tolist())
        findings.append(
            Finding(
                "points far from the training rows, share",
                len(far) / max(len(X), 1),
                0.05,
                "predictions there are extrapolated, and so are their intervals; see `far_points`",
                "Few or none of the rows here lie outside what the training rows cover.",
                "Many of the rows here lie outside what the training rows cover.",
            )
        )
    return Diagnosis(tuple(findings), far_points=far)


def _left_out(replicates: PNCReplicates) -> Iterator[Finding]:
    """Squared errors at rows left out, beside those of a constant."""
    trained, rows = replicates.trained, torch.from_numpy(replicates.checked.indices).to(replicates.device)
    errors = trained.leave_out(rows).errors.square().mean(0)
    labels = trained.task.labels[rows, 0]  # type: ignore[attr-defined]  # networks that bend know their task
    constant = (labels - labels.mean(0)).square().mean(0).clamp_min(torch.finfo(labels.dtype).tiny)
    yield Finding(
        "squared error at rows left out, share of a constant's",
        float((errors / constant).max()),
        1.0,
        "hardly anything but noise is seen in y: more rows or other features are needed",
        "Rows left out are predicted better than by a constant.",
        "Rows left out are predicted no better than by a constant.",
    )
