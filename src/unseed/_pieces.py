"""Rows that come in pieces."""

from __future__ import annotations

import numpy.typing as npt

Piece = tuple[npt.ArrayLike, npt.ArrayLike]
