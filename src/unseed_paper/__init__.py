"""Every table of "Efficient Uncertainty Quantification and Reduction for Over-Parameterized Neural Networks" (NeurIPS 2023).

A client of unseed's public names. ``unseed reproduce table-1`` is its front door; `reproduce` the same from Python.
"""

from unseed_paper.experiment import Experiment
from unseed_paper.protocols import PROTOCOLS
from unseed_paper.reproduction import reproduce

__all__ = ["PROTOCOLS", "Experiment", "reproduce"]
