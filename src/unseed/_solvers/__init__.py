"""Linear solves behind the closed forms, and trainers of real networks."""

from unseed._solvers.cholesky import restore
from unseed._solvers.conjugate_gradients import IterativeSolution, conjugate_gradients
from unseed._solvers.descent import descend
from unseed._solvers.dual import DualRidge
from unseed._solvers.gauss_newton import GaussNewton
from unseed._solvers.iterated import StoppedRidge
from unseed._solvers.mixed import solve_mixed, solve_ridge
from unseed._solvers.nystrom import NystromPreconditioner
from unseed._solvers.objective import Fit, Objective
from unseed._solvers.primal import NormalEquations, PrimalRidge, Sums
from unseed._solvers.ridge import WeightedRidge, random_signs
from unseed._solvers.sgd import SGD
from unseed._solvers.spectral import SpectralFilter
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
    "IterativeSolution",
    "NormalEquations",
    "NystromPreconditioner",
    "Objective",
    "PrimalRidge",
    "SpectralFilter",
    "StoppedRidge",
    "Sums",
    "Training",
    "WeightedRidge",
    "Work",
    "conjugate_gradients",
    "descend",
    "random_signs",
    "restore",
    "solve_mixed",
    "solve_ridge",
]
