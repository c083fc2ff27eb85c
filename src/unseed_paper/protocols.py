"""The three ways an experiment is run: the paper's text, the authors' code, and what a user of unseed gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unseed import MLP, GradientDescent, KernelEngine, LinearizedEngine, NetworkEngine
from unseed.kernels import ntk
from unseed_paper.problems import Setting

ENGINES = ("kernel", "linearized", "network")
REGULARIZATION = 1e-10
STEPS, WITHIN = (25, 50, 100, 200, 400), 1.05
_PILOT, _HELD_OUT = -1, 4


@dataclass(frozen=True)
class Protocol:
    """How networks are trained.

    Attributes
    ----------
    network : MLP or None
        None leaves everything to `PNCRegressor()`.
    interval_budget, error_budget : GradientDescent or None
        Training for the tables of intervals and of errors; None lets `tuned_budget` choose.
    separate_resamples : bool
        Whether base and auxiliary network of a bootstrap replicate see different resamples, which is not Algorithm 3.
    """

    name: str
    description: str
    network: MLP | None
    interval_budget: GradientDescent | None = None
    error_budget: GradientDescent | None = None
    separate_resamples: bool = False

    def budget(self, setting: Setting, *, for_errors: bool) -> GradientDescent | None:
        """Steps and rate for a setting; None where training goes on to convergence."""
        if self.network is None:
            return None
        fixed = self.error_budget if for_errors else self.interval_budget
        if fixed is None:
            return tuned_budget(setting, self.network)
        X = setting.sample(_PILOT).X
        return GradientDescent(steps=fixed.steps, rate=min(float(fixed.rate), half_the_bound(X, self.network)))


PROTOCOLS = {
    "paper": Protocol(
        "paper",
        "The text: one hidden ReLU layer without biases, full-batch gradient descent, λ = 1e-10, m' = R = 4. Rate: half of "
        "what would diverge. Steps: the fewest of 25, 50, 100, 200 and 400 whose error on a held-out quarter of one pilot "
        "training set is within 5 % of the smallest.",
        MLP(),
    ),
    "authors-code": Protocol(
        "authors-code",
        "The authors' public code: biases that start at zero, 80 steps of rate 0.01 for intervals and 350 of rate 0.6 for "
        "errors (or half of what would diverge, where 0.6 would), separate resamples for base and auxiliary network.",
        MLP(bias_scale=1.0, bias_init="zero"),
        GradientDescent(steps=80, rate=0.01),
        GradientDescent(steps=350, rate=0.6),
        separate_resamples=True,
    ),
    "default": Protocol(
        "default",
        "What PNCRegressor() does: network and λ chosen by evidence from the training rows, training to convergence.",
        None,
    ),
}


def half_the_bound(X: Any, network: MLP) -> float:
    """Half of the rate above which gradient descent diverges: 1/(2 v), v the largest eigenvalue of K/n + λ."""
    gram = ntk(X, network=network)
    vector = np.ones(len(gram))
    for _ in range(100):
        vector = gram @ vector
        vector /= np.linalg.norm(vector)
    largest = float(vector @ gram @ vector) / len(gram) + REGULARIZATION
    return 0.5 / largest


def tuned_budget(setting: Setting, network: MLP) -> GradientDescent:
    """The rule of protocol ``paper``: it looks at one pilot training set, three quarters of it to learn, one to check.

    The rate is half of what would diverge. The steps are the fewest of 25, 50, …, 400 whose mean square error on the
    held-out quarter is within 5 % of the smallest.
    """
    pilot = setting.sample(_PILOT)
    rate = half_the_bound(pilot.X, network)
    n_check = len(pilot.X) // _HELD_OUT
    check, learn = slice(0, n_check), slice(n_check, None)
    gram, cross = ntk(pilot.X[learn], network=network), ntk(pilot.X[check], pilot.X[learn], network=network)
    labels, dual = pilot.y[learn], np.zeros(len(gram))
    errors, done = [], 0
    for steps in STEPS:
        for _ in range(steps - done):
            dual = dual + 2 * rate * ((labels - gram @ dual) / len(gram) - REGULARIZATION * dual)
        errors.append(float(np.mean((cross @ dual - pilot.y[check]) ** 2)))
        done = steps
    enough = next(steps for steps, error in zip(STEPS, errors, strict=True) if error <= WITHIN * min(errors))
    return GradientDescent(steps=enough, rate=float(f"{rate:.3g}"))


def engine_for(name: str, budget: GradientDescent | None) -> KernelEngine | LinearizedEngine | NetworkEngine:
    """Engine of that name, trained as long as the budget says, or to convergence."""
    if name == "network":
        return NetworkEngine() if budget is None else NetworkEngine(trainer=budget)
    closed_form = KernelEngine if name == "kernel" else LinearizedEngine
    return closed_form() if budget is None else closed_form(training=budget)
