"""A whole layer's arithmetic in one pass over the pairs, on a GPU: there the memory, not the arithmetic, is what takes time.

torch compiles these few lines when they are first used. Where it cannot (no compiler in this build of it, or the function
that does it gone from a later version), the plain operations of `unseed.kernels.duals` do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch import Tensor

_PI = "const T pi = 3.14159265358979323846;"
_SINE = "sqrt(max((T(1) - cosine) * (T(1) + cosine), T(0)))"

SINE = f"""
template <typename T> T sine_of(T cosine) {{
  return {_SINE};
}}"""

# Θ ← w² (value + derivative · Θ) + b² of the last layer; the formulas are those of the duals
_BODIES = {
    "ReluDual": f"""
  {_PI}
  T scale = root * other;
  T derivative = scale > T(0) ? atan2(sine, -cosine) / pi : T(0);
  return w2 * (scale * (sine / pi + derivative * cosine) + derivative * before) + b2;""",
    "ErfDual": f"""
  {_PI}
  const T normalisation = pi / (T(2) * asin(T(2) / T(3)));
  T cross = root * other * sine;
  T determinant = T(1) + T(2) * root * root + T(2) * other * other + T(4) * cross * cross;
  T value = normalisation * T(2) / pi * atan2(T(2) * root * other * cosine, sqrt(determinant));
  T derivative = normalisation * T(4) / pi / sqrt(determinant);
  return w2 * (value + derivative * before) + b2;""",
}
TANGENTS = {
    dual: f"""
template <typename T> T {dual}_tangent(T cosine, T sine, T before, T root, T other, T w2, T b2) {{{body}
}}"""
    for dual, body in _BODIES.items()
}
SHALLOW_TANGENTS = {
    dual: f"""
template <typename T> T {dual}_shallow_tangent(T cosine, T root, T other, T w2, T b2) {{
  T sine = {_SINE};
  T before = root * other * cosine;{body}
}}"""
    for dual, body in _BODIES.items()
}


def fused_sine(cosine: Tensor) -> Tensor | None:
    """√(1 − cos²), or None where it must be computed in the plain way."""
    return _run(SINE, cosine)


def fused_tangent(
    dual: object, cosine: Tensor, sine: Tensor, before: Tensor, left_variance: Tensor, right_variance: Tensor, **scalars: float
) -> Tensor | None:
    """NTK after the last layer, or None where it must be computed in the plain way."""
    code = TANGENTS.get(type(dual).__name__)
    return None if code is None else _run(code, cosine, sine, before, *_roots(left_variance, right_variance), **scalars)


def fused_shallow_tangent(
    dual: object, cosine: Tensor, left_variance: Tensor, right_variance: Tensor, **scalars: float
) -> Tensor | None:
    """NTK of one hidden layer from the cosines alone, where no pair is nearly parallel; or None."""
    code = SHALLOW_TANGENTS.get(type(dual).__name__)
    return None if code is None else _run(code, cosine, *_roots(left_variance, right_variance), **scalars)


def _roots(left_variance: Tensor, right_variance: Tensor) -> tuple[Tensor, Tensor]:
    return left_variance.sqrt()[..., :, None], right_variance.sqrt()[..., None, :]


def _run(code: str, *tensors: Tensor, **scalars: float) -> Tensor | None:
    if tensors[0].device.type != "cuda":
        return None
    function = _compiled(code, tuple(scalars))
    if function is None or code in _REFUSED:
        return None
    try:
        result: Tensor = function(*tensors, **scalars)
    except RuntimeError:
        _REFUSED.add(code)
        return None
    return result


_REFUSED: set[str] = set()


@cache
def _compiled(code: str, scalars: tuple[str, ...]) -> Callable[..., Any] | None:
    try:
        from torch.cuda.jiterator import _create_jit_fn
    except ImportError:
        return None
    found: Callable[..., Any] = _create_jit_fn(code, **dict.fromkeys(scalars, 1.0))
    return found
