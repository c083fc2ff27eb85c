import numpy as np
import pandas as pd
import pytest
import torch

from unseed import MLP, PNCRegressor
from unseed.errors import InvalidInputError
from unseed.plots import RelevanceDisplay

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["dose", "age", "site"])


class TestRelevance:
    def test_the_feature_that_matters_comes_first(self):
        reg = PNCRegressor(random_state=0).fit(FRAME, np.sin(3 * FRAME["age"]))
        display = RelevanceDisplay.from_estimator(reg, max_features=2)
        assert display.names[0] == "age"
        assert display.relevance[0] == 1
        assert len(display.names) == 2
        assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.names

    def test_a_common_scale_is_said_to_be_one(self):
        network = MLP(input_scale=[0.5, 0.5, 0.5])
        display = RelevanceDisplay.from_estimator(PNCRegressor(network=network).fit(FRAME.to_numpy(), FRAME["age"]))
        assert display.names == ["x0", "x1", "x2"]
        assert "did not pay" in display.ax_.get_title(loc="left")

    def test_modules_have_none(self):
        reg = PNCRegressor(engine="linearized", network=lambda: torch.nn.Linear(3, 1)).fit(FRAME, FRAME["age"])
        with pytest.raises(InvalidInputError, match="a torch module has none"):
            RelevanceDisplay.from_estimator(reg)
