"""Options are described by name and fields, and only known names are rebuilt."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

import unseed
from unseed import (
    MLP,
    SGD,
    AutoNetwork,
    Converged,
    GaussNewton,
    GradientDescent,
    GradientFlow,
    KernelEngine,
    LinearizedEngine,
    MonteCarloMean,
    NetworkEngine,
)
from unseed._persistence.codec import NotDescribableError, describe, rebuild
from unseed._selection import Candidate, Selection
from unseed.intervals import METHODS

OPTIONS = [
    *(method() for method in METHODS.values()),
    *(KernelEngine(training=GradientFlow(time=2.5)), LinearizedEngine(width=7), NetworkEngine(trainer=SGD(epochs=3))),
    *(NetworkEngine(trainer=GaussNewton(tolerance=0.1), dtype="float64"), GradientDescent(steps=3, rate=0.1), Converged()),
    *(MLP(depth=3, input_scale=[0.1, 1 / 3], bias_init="zero"), AutoNetwork(max_rows=20), MonteCarloMean(draws=2)),
    Selection((Candidate(MLP(), 0.1, -1.5), Candidate(MLP(depth=2), 1e-300, 2.0)), "leave_one_out"),
    *(None, True, 3, 0.1, "text", [1, [2.5]], ("a", ("b", 1)), torch.device("cuda:1")),
]


@pytest.mark.parametrize("option", OPTIONS, ids=repr)
def test_options_come_back_equal_through_json(option):
    again = rebuild(json.loads(json.dumps(describe(option))))
    assert again == option
    assert type(again) is type(option)


def test_every_public_option_is_known():
    not_options = {"ClassPrediction", "Components", "Diagnosis", "Prediction"}
    fields = [
        name
        for name in unseed.__all__
        if hasattr(one := getattr(unseed, name), "__dataclass_fields__") and not issubclass(one, BaseEstimator)
    ]
    from unseed._persistence.codec import OPTIONS

    assert set(fields) - not_options <= OPTIONS.keys()


def test_a_subclass_with_an_options_name_is_not_that_option():
    Sectioning = type("Sectioning", (METHODS["sectioning"],), {})
    with pytest.raises(NotDescribableError):
        describe(Sectioning())


@pytest.mark.parametrize(
    "value", [len, object(), {"a": object()}, float("nan"), float("inf"), np.arange(3), MLP(activation=torch.selu)]
)
def test_what_json_cannot_say_is_not_described(value):
    with pytest.raises(NotDescribableError):
        describe(value)
    assert describe(value, {"other": 1, "network": value}) == {"type": "parameter", "fields": {"name": "network"}}


@pytest.mark.parametrize(
    "description",
    [
        {"type": "os.system", "fields": {}},
        {"type": "builtins.eval", "fields": {}},
        {"type": "MLP"},
        {"type": "MLP", "fields": [], "more": 1},
        {"type": ["MLP"], "fields": {}},
        {"type": "MLP", "fields": {"depth": {"type": "eval", "fields": {}}}},
        {"type": "device", "fields": {"name": "toaster"}},
        {"type": "parameter", "fields": {"name": "network"}},
        {},
        1e400,
    ],
    ids=str,
)
def test_other_descriptions_are_refused(description):
    with pytest.raises(ValueError, match=r"not|finite"):
        rebuild(description)


def test_a_random_state_of_another_generator_is_code():
    with pytest.raises(NotDescribableError):
        describe(np.random.RandomState(np.random.PCG64(1)))
