"""What is asked of a fitted model, as named arrays: everything a user could read off it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from itertools import chain
from typing import Any

import numpy as np

from unseed.errors import InvalidInputError, NotAvailableError

LEVELS = [0.5, 0.9, 0.95, 0.99]
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")

Quantities = dict[str, Any]


def answers(reg: Any, X: Any, *, name: str = "") -> Quantities:
    """Predictions, intervals and where they come from at new points; what the model says of itself."""
    asked: dict[str, Callable[[], Any]] = {
        "predict": lambda: reg.predict(X),
        "standard error": lambda: reg.predict(X, return_std=True)[1],
        "intervals": lambda: reg.predict_interval(X, LEVELS)[1],
        "prediction intervals": lambda: reg.predict_interval(X, LEVELS, kind="prediction")[1],
        "prediction": lambda: of_prediction(reg.get_prediction(X)),
    }
    optional: dict[str, Callable[[], Any]] = {
        "diagnose": lambda: of_diagnosis(reg.diagnose()),
        "diagnose at X": lambda: of_diagnosis(reg.diagnose(X)),
        "leave_one_out": lambda: reg.leave_one_out(),
        "contrast": lambda: of_prediction(reg.get_contrast(X[:-1], X[1:])),
        "seeds": lambda: reg.sample_networks(X, 4, members=2, random_state=1),
    }
    asked |= {question: ask for question, ask in optional.items() if hasattr(reg, _method(question))}
    found = {question: _answer(ask) for question, ask in asked.items()} | {"chosen": of_choice(reg)}
    return flat(found, name)


def _method(question: str) -> str:
    return {"diagnose at X": "diagnose", "contrast": "get_contrast", "seeds": "sample_networks"}.get(question, question)


def _answer(ask: Callable[[], Any]) -> Any:
    """What a question gives, or the kind of its refusal."""
    try:
        return ask()
    except (InvalidInputError, NotAvailableError) as refusal:
        return f"refused: {type(refusal).__name__}"


def of_prediction(prediction: Any) -> Quantities:
    """A whole `Prediction`: what it holds, its intervals, its bands and its joint law."""
    law, calibration = prediction.joint_law, prediction.calibration
    return {
        "mean": prediction.mean,
        "standard_error": prediction.standard_error,
        "degrees_of_freedom": prediction.degrees_of_freedom,
        "components": prediction.components,
        "conf_int": [prediction.conf_int(level) for level in LEVELS],
        "pred_int": [prediction.pred_int(level) for level in LEVELS],
        "simultaneous": [prediction.simultaneous(level) for level in (0.9, 0.95)],
        "joint law": "none" if law is None else law.covariance(),
        "calibration": "none" if calibration is None else {"expected": calibration.expected, "scores": calibration.scores},
        "frame": prediction.summary_frame(0.8).to_numpy(),
    }


def of_diagnosis(diagnosis: Any) -> Quantities:
    """Figures and limits by name; the numbers of the outlook."""
    figures = {finding.name: [finding.value, finding.limit] for finding in diagnosis.findings}
    return {"figures": figures, "outlook": numbers_in(diagnosis.outlook), "far": list(diagnosis.far_points)}


def of_choice(reg: Any) -> Quantities:
    """What the arguments came to, how training went, and how large the model is."""
    network, selection = getattr(reg, "network_", None), getattr(reg, "selection_", None)
    found = _shown(reg, "n_rows_", "regularization_", "convergence_")
    found["compression"] = _shown(getattr(reg, "compression_", None), "dtype", "n_rows", "n_anchors", "n_points")
    found["network"] = _shown(network, "depth", "width", "weight_std", "bias_scale", "bias_init", "scale_inputs", "input_scale")
    if selection is not None:
        rival = selection.rival
        found["candidates"] = {
            str(place): {"score": one.score, "regularization": one.regularization, "is": one.architecture.split(", scale")[0]}
            for place, one in enumerate(selection.candidates)
        }
        found["rival"] = "none" if rival is None else {"scales": rival.network.input_scale, "λ": rival.regularization}
    return found


def _shown(thing: Any, *names: str) -> Quantities:
    return {name: getattr(thing, name) for name in names if getattr(thing, name, None) is not None}


def numbers_in(text: str) -> list[float]:
    """Every number of a text, in order: words may change, numbers may not.

    Examples
    --------
    >>> numbers_in("1,024 rows in n^-0.5 or 3e-2 seconds (x2 is a name)")
    [1024.0, -0.5, 0.03]
    """
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def flat(value: Any, name: str = "") -> dict[str, np.ndarray]:
    """Named arrays of numbers or text, however deep they were nested.

    Examples
    --------
    >>> sorted(flat({"a": {"b": 1.0}, "c": [1, 2], "d": None}))
    ['a.b', 'c']
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        inner = (flat(part, f"{name}.{key}" if name else str(key)) for key, part in value.items())
        return dict(chain.from_iterable(part.items() for part in inner))
    if value is None:
        return {}
    if isinstance(value, (list, tuple)) and any(isinstance(one, (Mapping, list, tuple, str, type(None))) for one in value):
        return flat({str(place): one for place, one in enumerate(value)}, name)
    array = np.asarray(value)
    return {name: array if array.dtype.kind in "US" else array.astype(np.float64)}
