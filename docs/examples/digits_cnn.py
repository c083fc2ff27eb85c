"""A convolutional network of one's own: regress the digit from its picture, and say how sure that is."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from unseed import SGD, NetworkEngine, PNCRegressor


class DigitNetwork(nn.Module):
    """Two convolutions and a linear layer, with one output."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(16, 16, 3, stride=2),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(16 * 3 * 3, 1),
        )

    def forward(self, pictures):
        """Pictures of shape (n, 1, 8, 8) to digits of shape (n, 1)."""
        return self.body(pictures)


pictures, digits = load_digits(return_X_y=True)
pictures = pictures.reshape(-1, 1, 8, 8) / 16
train, test = slice(0, 200), slice(200, 300)

engine = NetworkEngine(trainer=SGD(epochs=100, batch_size=25, tolerance=0.02))
reg = PNCRegressor(engine=engine, network=DigitNetwork, interval="batching", random_state=0)
reg.fit(pictures[train], digits[train])
prediction = reg.get_prediction(pictures[test])
low, high = prediction.conf_int(0.95).T
error = np.abs(prediction.mean - digits[test])
print(f"mean error {error.mean():.2f} digits; mean half width {np.mean(high - low) / 2:.2f}")

figure, axes = plt.subplots(1, 6, figsize=(11, 2.4), layout="constrained")
order = np.argsort(high - low)
for ax, index in zip(axes, [*order[:3], *order[-3:]], strict=True):
    ax.imshow(pictures[test][index, 0], cmap="gray_r")
    ax.set_title(f"{digits[test][index]}: [{low[index]:.1f}, {high[index]:.1f}]", fontsize=10)
    ax.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "digits.png", dpi=110)
