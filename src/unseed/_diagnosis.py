"""Is the theory's ground under us? What the trained networks say of it, and what their errors do: a figure and advice each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from unseed._findings import Diagnosis, Finding
from unseed._jumps import largest_step
from unseed._predictors import PNCReplicates, chunks
from unseed._results import FloatArray, two_sided_quantile
from unseed._selection import SCREENING_ROWS, Choice, evidence_ahead
from unseed._told import telling_once
from unseed.engines import NewPoints, Probe
from unseed.intervals import IntervalMethod
from unseed.networks import MLP

_FEWER_ROWS = 1.5  # times that all rows are more than a replicate's, from where on their errors tell of a learning curve


@telling_once
def diagnose(
    replicates: PNCReplicates, interval: IntervalMethod, probe: FloatArray, choice: Choice, X: FloatArray | None = None
) -> Diagnosis:
    """Collect the findings that apply to these networks, looking at probe points; new points X may be far from all rows."""
    estimate = interval.estimate(replicates.at(probe, is_shared=True), probe)
    half_width = float(two_sided_quantile(0.95, estimate.degrees_of_freedom) * estimate.standard_error.mean())

    def in_half_widths(differences: Tensor) -> float:
        size = float(np.abs(replicates.scaling.from_differences(differences)).mean())
        return size / half_width if half_width > 0 else np.inf

    conditions = replicates.trained.conditions(Probe(NewPoints(replicates.inputs(probe)), in_half_widths))
    findings = [*conditions, *_bias(replicates, probe, half_width)]
    if not replicates.has_posterior:
        return Diagnosis(tuple(findings), handling=replicates.handling)
    findings += [*_left_out_errors(replicates), *_better_network(replicates, choice)]
    far: tuple[int, ...] = ()
    if X is not None:
        far = _far_points(replicates, X)
        findings.append(_extrapolation(len(far) / max(len(X), 1)))
    return Diagnosis(tuple(findings), _outlook(replicates), far, replicates.handling)


def _left_out_errors(replicates: PNCReplicates) -> Iterator[Finding]:
    """What leave-one-out errors say, the worst output of each."""
    errors, variance = replicates.left_out.errors, replicates.left_out.variance
    checked = replicates.checked
    tiny = np.finfo(np.float64).tiny
    mean_square = np.maximum((errors**2).mean(axis=0), tiny)
    noise = replicates.noise_at(checked.X)
    spread = np.maximum(checked.y.var(axis=0), tiny)
    yield Finding(
        "structure left in the errors, share of them",
        float((replicates.misfit.mean_square / mean_square).max()),
        0.1,
        "the network misses part of the function: try AutoNetwork(max_rows=...) with more rows, or features of your own",
        "The errors look like noise: no pattern is left in them.",
        "There is a pattern left in the errors.",
    )
    yield Finding(
        "left-out errors over what is expected, squared",
        float((errors**2 / np.maximum(variance + noise, tiny)).mean(axis=0).max()),
        2.0,
        "the model expects smaller errors than it makes: use network='auto', or look for outliers",
        "Rows left out one at a time are missed by no more than the model expects.",
        "Rows left out one at a time are missed by more than the model expects.",
    )
    rows = checked.X.reshape(len(checked.X), -1)
    step = max((largest_step(rows, own) for own in errors.T), key=lambda one: one.standard_errors)
    where = f"{step.value:.3g} of column {step.feature} (counted from 0)"
    yield Finding(
        "largest step in the errors along a feature, in standard errors",
        step.standard_errors,
        7.0,
        f"the function seems to jump near {where}: close to it intervals are too narrow; give a feature that tells both sides "
        "apart",
        "No jump of the function shows in the errors.",
        "The errors change sides where the function seems to jump.",
    )
    yield Finding(
        "noise, share of the variance of y",
        float((noise.mean(axis=0) / spread).max()),
        0.95,
        "hardly anything but noise is seen in y: more rows or other features are needed",
        "The features explain more than noise.",
        "Almost everything in y looks like noise to this model.",
    )


def _better_network(replicates: PNCReplicates, choice: Choice) -> Iterator[Finding]:
    """Evidence per row that a few other networks have more than the one trained."""
    if not isinstance(choice.network, MLP) or choice.selection is not None:
        return
    checked, scaling = replicates.checked, replicates.scaling
    rows = slice(0, SCREENING_ROWS)
    inputs = replicates.inputs(checked.X[rows])
    labels = torch.tensor(scaling.to_labels(checked.y[rows]), device=inputs.device)
    labels = labels - replicates.initial_mean(checked.X[rows], inputs)
    ahead = evidence_ahead(inputs, labels, choice.network, choice.regularization * replicates.sizes.max())
    yield Finding(
        "evidence per row that another network has more",
        ahead,
        0.2,
        "network='auto' finds one that fits these data better",
        "No network that was tried fits the data clearly better.",
        "Another network would fit these data clearly better.",
    )


def _outlook(replicates: PNCReplicates) -> str:
    """Learning curve from replicates of clearly fewer rows: their errors at rows not seen, against leave-one-out errors."""
    checked, plan = replicates.checked, replicates.plan
    counts = plan.at(checked.indices)
    if plan.n_replicates < 3 or (counts[1:] > 1).any():
        return ""
    ratio, unseen = replicates.sizes[0] / replicates.sizes[1:].mean(), counts[1:] == 0
    if ratio < _FEWER_ROWS or not unseen.any(axis=1).all():
        return ""
    errors = checked.y - replicates.predict(checked.X)[1:]  # (n_batches, m, k)
    noise = replicates.noise_at(checked.X).mean(axis=0)
    few = np.mean([np.mean(e[rows] ** 2, axis=0) for e, rows in zip(errors, unseen, strict=True)], axis=0) - noise
    full = (replicates.left_out.errors**2).mean(axis=0) - noise
    smallest = 1e-3 * noise + np.finfo(np.float64).tiny
    if (full <= smallest).any() or (few <= full).any():
        return "Learning curve: flat to within the noise; more rows of this kind bring little that these data could show."
    exponent = float(np.log(few / full).mean() / np.log(ratio) / 2)
    gains = [100 * (1 - factor**-exponent) for factor in (2, 4)]
    return (
        f"Learning curve: the error of the fit falls like n^-{exponent:.2f}; twice the rows would bring about "
        f"{gains[0]:.0f} % less, four times {gains[1]:.0f} %."
    )


def _far_points(replicates: PNCReplicates, X: FloatArray) -> tuple[int, ...]:
    """Points further from the training rows than any of these is from the others, by what the network can know there."""
    limit = replicates.left_out.variance.max(axis=0)
    pieces = chunks(X, replicates.trained.numbers_per_point)
    variances = np.concatenate([replicates.at(piece).posterior_variance(piece) for piece in pieces])
    return tuple(np.flatnonzero((variances > limit).any(axis=1)).tolist())


def _extrapolation(share: float) -> Finding:
    return Finding(
        "points far from the training rows, share",
        share,
        0.05,
        "predictions there are extrapolated, and so are their intervals; see `far_points`",
        "Few or none of the rows here lie outside what the training rows cover.",
        "Many of the rows here lie outside what the training rows cover.",
    )


def _bias(replicates: PNCReplicates, probe: FloatArray, half_width: float) -> Iterator[Finding]:
    """How far the resamples lie to one side of the full-data prediction, in half widths."""
    if replicates.plan.n_replicates < 3 or len(replicates.plan.reference) > 1:
        return
    centre, *others = replicates.predict(probe)
    shift = float(np.abs(np.mean(others, axis=0) - centre).mean())
    yield Finding(
        "bias of the resamples, in half widths",
        shift / half_width if half_width > 0 else 0.0,
        0.5,
        "bias rivals the spread: another network or more data would help; sectioning at least widens with it",
        "Fits to parts of the data scatter around the full fit instead of leaning to one side.",
        "Fits to parts of the data all lean to one side of the full fit: there is bias that more data would move.",
    )
