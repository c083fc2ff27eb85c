"""The Nyström preconditioner: what a few rows say of the whole kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._solvers.cholesky import JITTERS, jittered_cholesky, lower_cholesky, solve_with_factor
from unseed.errors import SingularKernelError


@dataclass(frozen=True)
class NystromPreconditioner:
    """Inverse of F Fᵀ + μ I with F Fᵀ = K_nr K_rr⁻¹ K_rn, the kernel matrix as r of its rows see it.

    Attributes
    ----------
    features : Tensor of shape (n, r)
        F.
    ridge : float
        μ.
    factor : Tensor of shape (r, r)
        Of FᵀF + μ I.
    """

    features: Tensor
    ridge: float
    factor: Tensor

    @classmethod
    def build(cls, landmarks: Tensor, cross: Tensor, ridge: float) -> NystromPreconditioner:
        """From the kernel of the chosen rows, (r, r), and that of all rows with them, (n, r); both are overwritten."""
        found = jittered_cholesky(landmarks, landmarks.diagonal().clone(), JITTERS)
        if found is None:
            raise SingularKernelError("the kernel matrix of the preconditioner's rows is singular; merge duplicate rows")
        root, _ = found
        features = torch.linalg.solve_triangular(root.mT, cross, upper=True, left=False, out=cross)
        inner = features.T @ features
        inner.diagonal().add_(ridge)
        factor = lower_cholesky(inner)
        if factor is None:
            raise SingularKernelError("the preconditioner is singular; raise regularization")
        return cls(features, ridge, factor)

    def __call__(self, columns: Tensor) -> Tensor:
        """(F Fᵀ + μ I)⁻¹ times each column, by the matrix inversion lemma. Shape (n, c)."""
        return (columns - self.features @ solve_with_factor(self.factor, self.features.T @ columns)) / self.ridge
