"""What `diagnose` found: figures with limits and advice, printed as a short table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One thing that the theory needs, how it stands here, and what to do about it.

    Attributes
    ----------
    name : str
    value : float
        The figure looked at.
    limit : float
        What it should stay below.
    advice : str
        What to do, for when it does not.
    if_it_holds, if_not : str
        What that means to a reader, in a sentence.

    Examples
    --------
    >>> Finding("networks that did not converge", 0, 1, "widen the network", if_it_holds="Every network converged.").sentence
    'Every network converged.'
    """

    name: str
    value: float
    limit: float
    advice: str
    if_it_holds: str = ""
    if_not: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure is below its limit (NaN is not)."""
        return self.value < self.limit

    @property
    def sentence(self) -> str:
        """What it means, in plain words."""
        plain = "fine" if self.holds else "not as it should be"
        return (self.if_it_holds if self.holds else self.if_not) or f"{self.name}: {plain}."

    @property
    def figures(self) -> str:
        """What was looked at, and what it should be."""
        return f"{self.name}: {self.value:.2g}, should be below {self.limit:.2g}"

    @property
    def what_to_do(self) -> str:
        """The advice where it is needed, as a sentence; empty where it is not."""
        return "" if self.holds else f"{self.advice}."


@dataclass(frozen=True)
class Diagnosis:
    """Whether the theory's ground is there; prints as a short table.

    Attributes
    ----------
    findings : tuple of Finding
    outlook : str
        What more data would bring, in a sentence; empty where that is not known.
    far_points : tuple of int
        Points asked about that are far from the training rows.
    handling : str
        How the rows were handled, in words.

    Examples
    --------
    >>> print(Diagnosis((Finding("condition number", 1e3, 1e12, "raise regularization"),)))
    ok    condition number                                  1e+03  (should be below 1e+12)
    """

    findings: tuple[Finding, ...]
    outlook: str = ""
    far_points: tuple[int, ...] = ()
    handling: str = ""

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What does not hold."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def __str__(self) -> str:
        lines = []
        for finding in self.findings:
            mark = "ok   " if finding.holds else "CHECK"
            line = f"{mark} {finding.name:45} {finding.value:9.2g}  (should be below {finding.limit:.2g})"
            lines.append(line if finding.holds else f"{line}: {finding.advice}")
        if self.outlook:
            lines.append(self.outlook)
        lines = lines or ["Nothing to look at: these networks name no conditions."]
        return "\n".join([f"{self.handling}.", *lines] if self.handling else lines)


@dataclass(frozen=True)
class LeaveOneOut:
    """How well training rows are predicted by networks that were trained on all others.

    Attributes
    ----------
    n_rows : int
        Rows that were looked at, a random thousand of many.
    rmse : array of shape (n_outputs,)
        Root of the mean squared error, in units of y.
    r_squared : array of shape (n_outputs,)
        1 − mean squared error over the variance of y.

    Examples
    --------
    >>> found = LeaveOneOut.of(np.array([[1.0], [2.0], [3.0]]), np.array([[0.1], [-0.1], [0.1]]))
    >>> found.r_squared.round(3).tolist()
    [0.985]
    """

    n_rows: int
    rmse: FloatArray
    r_squared: FloatArray

    @classmethod
    def of(cls, y: FloatArray, errors: FloatArray, unit: FloatArray | float = 1.0) -> LeaveOneOut:
        """From observations and their errors, both of shape (n_rows, n_outputs) and in a unit of y."""
        mean_square = (errors**2).mean(axis=0)
        spread = np.maximum(y.var(axis=0), np.finfo(np.float64).tiny)
        return cls(len(y), np.sqrt(mean_square) * unit, 1.0 - mean_square / spread)
