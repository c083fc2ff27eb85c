"""Is the theory's ground under us? Width, convergence, conditioning, bias against spread: a figure and advice each."""

from __future__ import annotations

import numpy as np
import torch

from unseed.engines import KernelReplicates, LinearizedReplicates, NetworkReplicates
from unseed.intervals import IntervalMethod
from unseed.predictors import PNCReplicates
from unseed.results import Diagnosis, Finding, FloatArray, two_sided_quantile
from unseed.solvers import WeightedRidge

_ROWS = 200  # of the tangent kernels compared


def diagnose(replicates: PNCReplicates, interval: IntervalMethod, probe: FloatArray) -> Diagnosis:
    """Collect the findings that apply to these networks, looking at the points ``probe``."""
    trained = replicates.trained
    findings = [_conditioning(trained), *_bias(replicates, interval, probe)]
    if isinstance(trained, NetworkReplicates):
        findings += [*_convergence(trained), *_width(trained)]
        if trained.convergence.wanted:  # a training stopped on purpose is not the converged one of the linearisation
            findings.append(_linearity(replicates, trained, interval, probe))
    return Diagnosis(tuple(finding for finding in findings if finding is not None))


def _conditioning(trained: object) -> Finding | None:
    factors: list[object] = []
    if isinstance(trained, KernelReplicates):
        factors = [factor for _, factor in trained.references]
    elif isinstance(trained, LinearizedReplicates):
        factors = [trained.tangents[r].factor for r in trained.reference]
    elif isinstance(trained, NetworkReplicates):
        factors = [tangent.factor for tangent in trained.tangents]
    conditions = [factor.condition for factor in factors if isinstance(factor, WeightedRidge)]
    if not conditions:
        return None
    return Finding(
        "condition number of the kernel matrix", max(conditions), 1e12, "raise regularization or merge duplicate rows"
    )


def _bias(replicates: PNCReplicates, interval: IntervalMethod, probe: FloatArray) -> list[Finding]:
    """How far the resamples lie to one side of the full-data prediction, in half widths."""
    if len(replicates.plan.counts) < 3 or len(replicates.plan.reference) > 1:
        return []
    centre, *others = replicates.predict(probe)
    shift = np.abs(np.mean(others, axis=0) - centre).mean()
    half = _half_width(replicates, interval, probe)
    return [
        Finding(
            "bias of the resamples, in half widths",
            float(shift / half) if half > 0 else 0.0,
            0.5,
            "bias rivals the spread: another network or more data would help; sectioning at least widens with it",
        )
    ]


def _convergence(trained: NetworkReplicates) -> list[Finding]:
    convergence = trained.convergence
    more = "training stopped early: give the trainer more steps, or use trainer=GaussNewton()"
    findings = [Finding("gradient left, relative to the start's", float(convergence.relative_gradient.max()), 1e-2, more)]
    if convergence.wanted:
        missing = int((~convergence.converged).sum())
        named = f"{convergence.unconverged}: widen the network, raise regularization or give the trainer more steps"
        findings.append(Finding("networks that did not converge", missing, 1, named))
    return findings


def _width(trained: NetworkReplicates) -> list[Finding]:
    """How far training moved the parameters, and the tangent kernel with them."""
    replicate = trained.plan.reference[0]
    start, end = trained.starts[replicate].double(), trained.parameters[replicate, 0].double()
    moved = float(torch.linalg.vector_norm(end - start) / torch.linalg.vector_norm(start))
    batch = trained.tangents[0].batch
    X = trained.tangents[0].X[None, :_ROWS]
    before, after = (batch.evaluate(theta[None], X).tangent_kernel() for theta in (start, end))
    change = float(torch.linalg.matrix_norm(after - before)[0] / torch.linalg.matrix_norm(before)[0])
    wider = "the network is too narrow to stay linear: widen it, or raise regularization"
    return [
        Finding("change of the tangent kernel in training", change, 0.2, wider),
        Finding("distance of the parameters from their start", moved, 0.2, wider),
    ]


def _linearity(replicates: PNCReplicates, trained: NetworkReplicates, interval: IntervalMethod, probe: FloatArray) -> Finding:
    """Trained against linearised PNC prediction, in half widths of the interval."""
    replicate = trained.plan.reference[0]
    tangent = trained.tangent_at(replicate, trained.starts[replicate])
    rows = torch.from_numpy(np.flatnonzero(trained.plan.counts[replicate])).to(trained.task.X.device)
    inputs = replicates.inputs(probe)
    linear = tangent.predict(inputs, tangent.solve(trained.task.contrast[rows][:, None]))[:, 0]
    outputs = trained.predict(inputs)[replicate]
    difference = (outputs[:, 0] - outputs[:, 1] - linear).abs().cpu().numpy() * replicates.scaling.y_scale
    half = _half_width(replicates, interval, probe)
    return Finding(
        "trained against linearised prediction, in half widths",
        float(difference.mean() / half) if half > 0 else np.inf,
        0.5,
        "finite width shows: widen the network or raise regularization",
    )


def _half_width(replicates: PNCReplicates, interval: IntervalMethod, probe: FloatArray) -> float:
    estimate = interval.estimate(replicates, probe)
    return float(two_sided_quantile(0.95, estimate.degrees_of_freedom) * estimate.standard_error.mean())
