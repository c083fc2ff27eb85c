"""Memory of tiles is used again and bounded, whatever sizes come."""

import numpy as np
import pytest
import torch

from unseed import MLP
from unseed._expectations import _scratch as scratch
from unseed.kernels import ntk
from unseed.kernels._gram import CPU_TEMPORARY_BYTES


@pytest.mark.parametrize("activation", ["relu", "erf", "sin", "tanh"])
def test_memory_kept_stays_within_the_budget_however_tiles_grow(activation, monkeypatch):
    monkeypatch.setattr(scratch, "_IDLE", type(scratch._IDLE)(maxlen=16))
    X = np.random.default_rng(0).normal(size=(350, 3))
    for n_rows in (30, 120, 200, 350, 250):
        ntk(X[:n_rows], network=MLP(depth=2, activation=activation, bias_scale=1.0))
    assert scratch._IDLE
    for kept in scratch._IDLE:
        assert not kept._used
        assert sum(buffer.numel() * buffer.element_size() for buffer in kept._free) <= CPU_TEMPORARY_BYTES


def test_memory_of_a_failed_tile_is_not_handed_on(monkeypatch):
    monkeypatch.setattr(scratch, "_IDLE", type(scratch._IDLE)(maxlen=16))

    def fail():
        with scratch.borrowed_scratch() as held:
            held.take(torch.zeros(1), (2, 2))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert not scratch._IDLE
