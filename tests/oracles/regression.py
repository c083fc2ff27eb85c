"""Slow and obvious fits: repeated rows, explicit parameters, derivatives in the weights by complex steps."""

import numpy as np
from scipy.integrate import solve_ivp


def ridge_on_repeated_rows(K, K_new, y, counts, regularization):
    """h at new points after physically repeating row i counts[i] times."""
    rows = np.repeat(np.arange(len(y)), counts)
    A = K[np.ix_(rows, rows)] + regularization * len(rows) * np.eye(len(rows))
    return K_new[:, rows] @ np.linalg.solve(A, y[rows])


def flow_of_linear_model(J, y, counts, regularization, time, rate):
    """θ(time) of gradient flow on (1/n) Σ c_i (J_i θ − y_i)² + λ‖θ‖² from θ = 0, integrated numerically."""
    n = counts.sum()

    def velocity(_, theta):
        return -rate * (2 / n * J.T @ (counts * (J @ theta - y)) + 2 * regularization * theta)

    path = solve_ivp(velocity, (0.0, time), np.zeros(J.shape[1]), method="DOP853", rtol=1e-13, atol=1e-14)
    return path.y[:, -1]


def descent_of_linear_model(J, y, counts, regularization, steps, rate):
    """θ after so many gradient steps on the same loss."""
    n, theta = counts.sum(), np.zeros(J.shape[1])
    for _ in range(steps):
        theta = theta - rate * (2 / n * J.T @ (counts * (J @ theta - y)) + 2 * regularization * theta)
    return theta


def influence_by_complex_step(K, K_new, y, regularization):
    """d/dε of the fit to (1 − ε) π_n + ε δ_i at ε = 0, for every row i. Shape (n_rows, n_points)."""
    n, step = len(y), 1e-30
    influence = []
    for i in range(n):
        weights = np.full(n, (1 - 1j * step) / n)
        weights[i] += 1j * step
        fit = K_new @ np.linalg.solve(K + regularization * np.diag(1 / weights), y.astype(complex))
        influence.append(fit.imag / step)
    return np.array(influence)


def influence_by_theorem(K, K_new, y, regularization):
    """The paper's theorem as printed, with its 1/λ. Shape (n_rows, n_points)."""
    n = len(y)
    solve = np.linalg.inv(K + regularization * n * np.eye(n))
    fit, fit_new = K @ solve @ y, K_new @ solve @ y
    residual = y - fit
    M = fit[None, :] - residual[:, None] * K / regularization
    M_new = fit_new[None, :] - residual[:, None] * K_new.T / regularization
    return M @ solve @ K_new.T - M_new


def leave_one_out_by_refitting(K, y, ridge):
    errors = []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), y[rest])
        errors.append(y[i] - K[i, rest] @ weights)
    return np.array(errors)
