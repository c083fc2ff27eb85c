"""Linear solves behind the closed forms, and trainers of real networks."""

from unseed.solvers.cholesky import restore
from unseed.solvers.conjugate_gradients import IterativeSolution, conjugate_gradients
from unseed.solvers.descent import descend
from unseed.solvers.gauss_newton import GaussNewton
from unseed.solvers.iterated import StoppedRidge
from unseed.solvers.mixed import solve_mixed, solve_ridge
from unseed.solvers.nystrom import NystromPreconditioner
from unseed.solvers.objective import Fit, Objective
from unseed.solvers.ridge import WeightedRidge, random_signs
from unseed.solvers.sgd import SGD
from unseed.solvers.spectral import SpectralFilter
from unseed.solvers.training import Converged, GradientDescent, GradientFlow, Training

__all__ = [
    "SGD",
    "Converged",
    "Fit",
    "GaussNewton",
    "GradientDescent",
    "GradientFlow",
    "IterativeSolution",
    "NystromPreconditioner",
    "Objective",
    "SpectralFilter",
    "StoppedRidge",
    "Training",
    "WeightedRidge",
    "conjugate_gradients",
    "descend",
    "random_signs",
    "restore",
    "solve_mixed",
    "solve_ridge",
]
