"""What cutting a model down has saved, and what it has changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Compression:
    """Sizes of a model before and after `compress`, and how far predictions and standard errors have moved.

    Changes are in units of y, one for each output, over the points that were looked at: training rows (at most a thousand)
    and points half-way between rows.

    Attributes
    ----------
    dtype : str
        Of the rows.
    n_rows, n_anchors : int
        Rows of the whole model, and rows that are left of them.
    bytes_before, bytes_after : int
    n_points : int
        Points that were looked at.
    largest_change, rms_change : tuple of float
        Of the prediction.
    largest_error_change, rms_error_change : tuple of float
        Of its standard error.

    Examples
    --------
    >>> print(Compression("float32", 1000, 200, 120_000, 40_000, 50, (0.5,), (0.1,), (0.25,), (0.125,)))
    200 of 1,000 rows, float32: 120,000 -> 40,000 bytes; over 50 points the prediction moves by at most 0.5 (rms 0.1) and its \
standard error by at most 0.25 (rms 0.125), in units of y
    """

    dtype: str
    n_rows: int
    n_anchors: int
    bytes_before: int
    bytes_after: int
    n_points: int
    largest_change: tuple[float, ...]
    rms_change: tuple[float, ...]
    largest_error_change: tuple[float, ...]
    rms_error_change: tuple[float, ...]

    def __str__(self) -> str:
        moved, error = (
            f"at most {_figures(largest)} (rms {_figures(rms)})"
            for largest, rms in (
                (self.largest_change, self.rms_change),
                (self.largest_error_change, self.rms_error_change),
            )
        )
        return (
            f"{self.n_anchors:,} of {self.n_rows:,} rows, {self.dtype}: {self.bytes_before:,} -> {self.bytes_after:,} bytes; "
            f"over {self.n_points:,} points the prediction moves by {moved} and its standard error by {error}, in units of y"
        )


def _figures(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
