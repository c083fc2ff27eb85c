"""Linear solves behind the closed forms, and trainers of real networks."""

from unseed._solvers.cholesky import restore
from unseed._solvers.gauss_newton import GaussNewton
from unseed._solvers.iterative import conjugate_gradients, solve_ridge
from unseed._solvers.objective import Fit, Objective
from unseed._solvers.primal import NormalEquations, PrimalRidge, Sums
from unseed._solvers.ridge import DualRidge, WeightedRidge
from unseed._solvers.sgd import SGD
from unseed._solvers.stopped import StoppedRidge
from unseed._solvers.training import Converged, GradientDescent, GradientFlow, Training
from unseed._solvers.work import Work

__all__ = [
    "SGD",
    "Converged",
    "DualRidge",
    "Fit",
    "GaussNewton",
    "GradientDescent",
    "GradientFlow",
    "NormalEquations",
    "Objective",
    "PrimalRidge",
    "StoppedRidge",
    "Sums",
    "Training",
    "WeightedRidge",
    "Work",
    "conjugate_gradients",
    "restore",
    "solve_ridge",
]
