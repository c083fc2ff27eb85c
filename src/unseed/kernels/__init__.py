"""Population kernels of fully connected networks: the NTK and the NNGP, NumPy in and out.

Examples
--------
>>> import numpy as np
>>> from unseed import MLP
>>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
>>> ntk(X, X, network=MLP()).round(4)
array([[2.    , 0.3183],
       [0.3183, 2.    ]])
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.kernels._gram import PopulationKernel
from unseed.kernels._recursion import Kind, Profile
from unseed.networks import MLP

__all__ = ["PopulationKernel", "Profile", "nngp", "ntk"]


def ntk(X: npt.ArrayLike, Z: npt.ArrayLike | None = None, *, network: MLP) -> npt.NDArray[np.float64]:
    """Neural tangent kernel between the rows of X and Z (or of X and itself, exactly symmetric).

    Parameters
    ----------
    X, Z : array-like of shape (n, d), (m, d)
    network : MLP

    Returns
    -------
    array of shape (n, m), float64
    """
    return _matrix(X, Z, network, "ntk")


def nngp(X: npt.ArrayLike, Z: npt.ArrayLike | None = None, *, network: MLP) -> npt.NDArray[np.float64]:
    """Covariance of the untrained network's outputs between the rows of X and Z (or of X and itself).

    Parameters
    ----------
    X, Z : array-like of shape (n, d), (m, d)
    network : MLP

    Returns
    -------
    array of shape (n, m), float64
    """
    return _matrix(X, Z, network, "nngp")


def _matrix(X: npt.ArrayLike, Z: npt.ArrayLike | None, network: MLP, kind: Kind) -> npt.NDArray[np.float64]:
    kernel, left = PopulationKernel(network), _as_rows("X", X)
    gram, cross = (kernel.ntk_gram, kernel.ntk_cross) if kind == "ntk" else (kernel.nngp_gram, kernel.nngp_cross)
    if Z is None or Z is X:
        return gram(kernel.profile(left)).numpy()
    right = _as_rows("Z", Z)
    if left.shape[1] != right.shape[1]:
        raise InvalidInputError(f"X has {left.shape[1]} columns and Z has {right.shape[1]}; they must be the same")
    return cross(kernel.profile(left), kernel.profile(right)).numpy()


def _as_rows(name: str, X: npt.ArrayLike) -> Tensor:
    array = np.array(X, dtype=np.float64)
    if array.ndim != 2:
        raise InvalidInputError(f"{name} has shape {array.shape}; give a two-dimensional array (rows, features)")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} contains NaN or infinity; remove or impute those values")
    return torch.from_numpy(array)
