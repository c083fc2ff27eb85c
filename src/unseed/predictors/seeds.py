"""What single networks and deep ensembles of other seeds would have predicted, drawn exactly.

A trained network of infinite width is s(x) + K(x, X) A⁻¹ (y − s(X)) with s drawn from the NNGP. Around the PNC
prediction it is Gaussian with the procedural covariance, so drawing from that is drawing the initial function on
training and new points and training it, at the cost of the new points alone.
"""

import numpy as np

from unseed.results import FloatArray


def draw_networks(
    pnc: FloatArray, covariance: FloatArray, n_networks: int, members: int, generator: np.random.Generator
) -> FloatArray:
    """Predictions of networks (or of averages of ``members`` networks) from independent seeds.

    Parameters
    ----------
    pnc : array of shape (n_points, n_outputs)
    covariance : array of shape (n_points, n_points)
        Over seeds, of a single network; outputs are independent.
    n_networks : int
        How many independent draws.
    members : int
        Size of the deep ensemble each draw averages; 1 is a single network.

    Returns
    -------
    array of shape (n_networks, n_points, n_outputs)
    """
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(eigenvalues, 0.0, None) / members)
    noise = generator.standard_normal((n_networks, *pnc.shape))
    draws: FloatArray = pnc + np.einsum("pq,nqk->npk", root, noise)
    return draws
