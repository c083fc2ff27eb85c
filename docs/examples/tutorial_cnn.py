"""A convolutional network on pictures: by how many degrees a three has been turned, and how sure that is."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from torch import nn

from unseed import SGD, NetworkEngine, PNCRegressor


class TurnNetwork(nn.Module):
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
        """Pictures of shape (n, 1, 8, 8) to angles of shape (n, 1)."""
        return self.body(pictures)


def turned(pictures, angles):
    """Pictures of shape (n, 1, 8, 8), each turned by its angle in degrees."""
    return np.array([rotate(p, a, reshape=False, order=1) for p, a in zip(pictures, angles, strict=True)])[:, None]


def inside(intervals, values):
    """Share of values that their intervals hold."""
    return np.mean((intervals[:, 0] <= values) & (values <= intervals[:, 1]))


digits = load_digits()
threes, sevens = (digits.images[digits.target == digit] / 16 for digit in (3, 7))
angles = np.random.default_rng(0).uniform(-60, 60, 180)
pictures = turned(threes[:180], angles)
train, test = slice(0, 120), slice(120, 180)

engine = NetworkEngine(trainer=SGD(epochs=150, batch_size=30, tolerance=0.03))
reg = PNCRegressor(engine=engine, network=TurnNetwork, interval="sectioning", random_state=0)
reg.fit(pictures[train], angles[train])

prediction = reg.get_prediction(pictures[test])
strange = reg.get_prediction(turned(sevens[:60], angles[test]))  # a digit that the network has never seen

print("| pictures | mean error, degrees | mean half width | angle inside the 95 % prediction interval |")
print("|---|---|---|---|")
for name, found in (("threes, held out", prediction), ("sevens", strange)):
    error = np.abs(found.mean - angles[test]).mean()
    half = np.ptp(found.conf_int(0.95), axis=1).mean() / 2
    print(f"| {name} | {error:.0f} | {half:.0f} | {inside(found.pred_int(0.95), angles[test]):.0%} |")

figure, axes = plt.subplots(1, 6, figsize=(11, 2.4), layout="constrained")
low, high = prediction.conf_int(0.95).T
order = np.argsort(high - low)
for ax, index in zip(axes, [*order[:3], *order[-3:]], strict=True):
    ax.imshow(pictures[test][index, 0], cmap="gray_r")
    ax.set_title(f"{angles[test][index]:.0f}°: {low[index]:.0f}° to {high[index]:.0f}°", fontsize=10)
    ax.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tutorial_cnn.png", dpi=90)
