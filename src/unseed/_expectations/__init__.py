"""Gaussian expectations of activations, at points and at pairs: what kernels of infinitely wide networks are made of."""

from unseed._expectations._hermite import HermiteExpansion
from unseed._expectations._moments import Expectations, Moments, Points, ShallowProduct
from unseed._expectations._quadrature import NODES, gaussian_mean

__all__ = ["NODES", "Expectations", "HermiteExpansion", "Moments", "Points", "ShallowProduct", "gaussian_mean"]
