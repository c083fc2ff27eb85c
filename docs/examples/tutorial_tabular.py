"""A table with a target column: fit, intervals for every row, what they are made of, and whether to believe them."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from unseed import PNCRegressor
from unseed.plots import CoverageDisplay, IntervalDisplay

table = load_diabetes(as_frame=True, scaled=False).frame.sample(frac=1, random_state=0)  # 442 patients, in medical units
train, test = table[:300], table[300:]
features = table.columns.drop("target")

reg = PNCRegressor(random_state=0).fit(train[features], train["target"])

prediction = reg.get_prediction(test[features])
frame = prediction.summary_frame(0.95)  # keeps the index of the table

inside = test["target"].between(frame["obs_ci_lower"], frame["obs_ci_upper"])
rmse = ((frame["mean"] - test["target"]) ** 2).mean() ** 0.5
parts = prediction.components
print("| 142 held-out patients | |")
print("|---|---|")
print(f"| error at held-out rows (RMSE) | {rmse:.0f} |")
print(f"| half width of the confidence intervals, average | {(frame['mean_ci_upper'] - frame['mean']).mean():.0f} |")
print(f"| half width of the prediction intervals, average | {(frame['obs_ci_upper'] - frame['mean']).mean():.0f} |")
print(f"| held-out y inside their 95 % prediction intervals | {inside.mean():.0%} |")
print(f"| standard deviation of the noise | {parts.noise.mean() ** 0.5:.0f} |")
print(f"| standard error of the function | {parts.data.mean() ** 0.5:.0f} |")
print(f"| what another seed would have moved a single network | {parts.procedural.mean() ** 0.5:.1f} |")

heavier = test[features].head(5).assign(bmi=lambda rows: rows["bmi"] + 5)
contrast = reg.get_contrast(heavier, test[features].head(5))
low, high = contrast.conf_int(0.95)[0]
print(f"| a body mass index 5 higher, first test patient | {contrast.mean[0]:.0f}, from {low:.0f} to {high:.0f} |")

print(reg.diagnose(test[features]))

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
IntervalDisplay.from_estimator(reg, test[features][:60], test["target"][:60], ax=axes[0])
CoverageDisplay.from_estimator(reg, test[features], test["target"], ax=axes[1])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tutorial_tabular.png", dpi=80)
