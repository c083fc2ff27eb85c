"""Gaussian expectations of activations, at points and at pairs: what kernels of infinitely wide networks are made of."""

from unseed._expectations._closed_forms import ERF, RELU, SIN
from unseed._expectations._hermite import NODES, WEIGHTS, HermiteExpansion
from unseed._expectations._pairs import Expectations, Moments, Points

__all__ = ["ERF", "NODES", "RELU", "SIN", "WEIGHTS", "Expectations", "HermiteExpansion", "Moments", "Points"]
