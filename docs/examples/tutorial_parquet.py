"""Rows in a folder of Parquet files: a fit that is interrupted and goes on, and rows that arrive later.

python docs/examples/tutorial_parquet.py             with 30,000 rows, in seconds
python docs/examples/tutorial_parquet.py 10000000    with ten million, in minutes
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unseed import MLP, Landmarks, PNCRegressor, parquet_pieces

FEATURES = ["load", "wind", "angle"]
FILES = 20


def truth(X):
    """The function behind the data."""
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def draw(n_rows, seed):
    """Rows, and labels with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, len(FEATURES))).astype(np.float32)
    return X, truth(X) + 0.3 * rng.standard_normal(n_rows)


def write_file(path, X, y):
    """Three features, the output, and a column that nobody needs."""
    columns = dict(zip(FEATURES, X.T, strict=True)) | {"output": y, "note": ["…"] * len(y)}
    pq.write_table(pa.table(columns), path)


def write(folder, n_rows):
    """Some files; no more than one of them is ever in memory."""
    folder.mkdir()
    for number in range(FILES):
        write_file(folder / f"day-{number:02d}.parquet", *draw(n_rows // FILES, seed=number))


def model():
    """What is given here is left out for data of one's own."""
    network = MLP(activation="erf", bias_scale=1.0, scale_inputs=True)
    return PNCRegressor(network=network, solver=Landmarks(count=300), random_state=0)


def fit(pieces, checkpoint):
    """Begin, or go on."""
    return model().fit_stream(pieces, checkpoint=checkpoint)


class PowerCut:
    """Pieces, and in the middle of adding them up the lights go out."""

    def __init__(self, pieces):
        self.pieces, self.passes = pieces, 0

    def __iter__(self):
        self.passes += 1
        for number, piece in enumerate(self.pieces):
            if self.passes == 2 and number == len(self.pieces) // 2:
                os._exit(1)  # no word to anybody, as if pulled out of the wall
            yield piece


def figures(found, f):
    """Error, width and coverage of a prediction, as cells of a table."""
    low, high = found.conf_int(0.95).T
    inside = np.mean((low <= f) & (f <= high))
    return f"{np.sqrt(np.mean((found.mean - f) ** 2)):.4f} | {np.mean(high - low):.3f} | {inside:.2f}"


def main(n_rows, folder):
    """Write, fit with an interruption, predict, and take the rows of today."""
    rows, checkpoint, seconds = folder / "rows", folder / "so-far", time.perf_counter()
    write(rows, n_rows)
    size = sum(file.stat().st_size for file in rows.iterdir()) / 1e6
    print(f"{n_rows:,} rows written, {size:,.0f} MB, {time.perf_counter() - seconds:.0f} s", flush=True)

    stopped = subprocess.run([sys.executable, __file__, "with a power cut", str(folder)], check=False)
    assert stopped.returncode == 1
    assert checkpoint.is_dir()
    print(f"interrupted after {time.perf_counter() - seconds:.0f} s", flush=True)

    pieces = parquet_pieces(rows, "output", features=FEATURES)
    reg = fit(pieces, checkpoint)
    reg.save(folder / "model")
    print(f"{reg.handling_}, {time.perf_counter() - seconds:.0f} s", flush=True)

    X_new, _ = draw(2_000, seed=1_000)
    before = reg.get_prediction(X_new)
    today = draw(n_rows // FILES, seed=FILES)
    later = PNCRegressor.load(folder / "model").partial_fit(*today)
    after = later.get_prediction(X_new)
    print(f"{later.handling_}, {time.perf_counter() - seconds:.0f} s", flush=True)

    print("| rows | RMSE | average width | f inside |")
    print("|---|---|---|---|")
    print(f"| {reg.n_rows_:,} | {figures(before, truth(X_new))} |")
    print(f"| {later.n_rows_:,}, with those of today | {figures(after, truth(X_new))} |")
    print(later.diagnose())


if __name__ == "__main__":
    if sys.argv[1:2] == ["with a power cut"]:
        interrupted = Path(sys.argv[2])
        fit(PowerCut(parquet_pieces(interrupted / "rows", "output", features=FEATURES)), interrupted / "so-far")
    with tempfile.TemporaryDirectory() as place:
        main(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 30_000, Path(place))
