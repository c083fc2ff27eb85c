"""Rows that lie on the workers of a cluster: processors' seconds, memory, bytes that travel, and a worker that is killed.

    python benchmarks/cluster.py --rows 200000 --workers 1 2 4
    python benchmarks/scaling_page.py

Workers are processes of this machine, a thread each, and make their rows themselves, as if they had read them. Every model is
compared with that of `fit` on all rows as arrays. Wall seconds depend on what else the machine does; those of the processors
hardly do, and what docs/scaling.md says of larger clusters is made of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import resource
import signal
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from distributed.comm.tcp import TCP

from cluster_page import OUT
from limits import machine
from unseed import MLP, Landmarks, PNCRegressor, replaced

FEATURES, PARTITIONS, POINTS, NOISE = 10, 32, 500, 0.3
FEWER = 4  # times: what rows cost is what more of them cost more
NETWORK = MLP(activation="erf", bias_scale=1.0, scale_inputs=True)
Array = np.ndarray[Any, Any]
Record = dict[str, Any]


def block(number: int, rows: int) -> Array:
    """Features and, in the last column, labels: always the same for a number. Shape (rows, FEATURES + 1)."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, (rows, FEATURES))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.exp(-3 * X[:, 3] ** 2)
    return np.column_stack([X, f + NOISE * rng.standard_normal(rows)])


def model(landmarks: int) -> PNCRegressor:
    return PNCRegressor(network=NETWORK, solver=Landmarks(count=landmarks), random_state=0, device="cpu")


def partitions(rows: int) -> tuple[Any, Any]:
    """X and y, made where they are needed."""
    each = rows // PARTITIONS

    def made(block_info: Any = None) -> Array:
        return block(block_info[None]["chunk-location"][0], each)

    both = da.map_blocks(made, chunks=((each,) * PARTITIONS, (FEATURES + 1,)), dtype=np.float64, meta=np.empty((0, 0)))
    return both[:, :FEATURES], both[:, FEATURES]


def answers(fitted: PNCRegressor) -> Array:
    mean, intervals = fitted.predict_interval(block(-1 % 2**32, POINTS)[:, :FEATURES])
    return np.column_stack([mean, intervals[:, :, 0]])


def count_bytes() -> None:
    """From now on this process counts what it sends."""
    write: Any = TCP.write

    async def counted(self: TCP, *arguments: Any, **options: Any) -> Any:
        sent = await write(self, *arguments, **options)
        TCP.sent_bytes += sent  # type: ignore[attr-defined]
        return sent

    TCP.sent_bytes, TCP.write = 0, counted  # type: ignore[attr-defined,method-assign]


def spent() -> Array:
    """Seconds of this process's processor, bytes it has sent, the most memory it had."""
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return np.array([time.process_time(), TCP.sent_bytes, peak])  # type: ignore[attr-defined]


def of_all(rows: int) -> tuple[Any, Any]:
    """The same rows, here."""
    both = np.concatenate([block(number, rows // PARTITIONS) for number in range(PARTITIONS)])
    return both[:, :FEATURES], both[:, FEATURES]


def measured(rows: int, workers: int, landmarks: int, expected: Array) -> Record:
    """One fit on so many workers, which have imported what they need."""
    with _cluster(workers) as cluster, Client(cluster) as client:
        client.run(count_bytes)
        model(8).fit(*partitions(PARTITIONS * 400))
        before, own, start = client.run(spent), spent(), time.perf_counter()
        fitted = model(landmarks).fit(*partitions(rows))
        wall, own, after = time.perf_counter() - start, spent() - own, client.run(spent)
    seconds, sent, _ = sum(after[worker] - before[worker] for worker in after)
    return {
        **{"rows": rows, "workers": workers, "landmarks": landmarks, "wall_seconds": wall},
        **{"worker_seconds": seconds, "own_seconds": own[0], "worker_sent_bytes": int(sent), "own_sent_bytes": int(own[1])},
        "worker_peak_bytes": int(max(peak for _, _, peak in after.values())),
        "difference": difference(answers(fitted), expected),
    }


def killed(rows: int, workers: int, landmarks: int, expected: Array) -> Record:
    """The same with a worker that is killed half a second after it was seen to add up a partition."""
    with _cluster(workers) as cluster, Client(cluster) as client:
        processes, deaths = client.run(os.getpid), list[bool]()

        def kill() -> None:
            while not (adding := _adding(client)):
                time.sleep(0.02)
            time.sleep(0.5)
            adding_now = _adding(client)
            os.kill(processes[(adding_now or adding)[0]], signal.SIGKILL)
            deaths.append(bool(adding_now))

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        start = time.perf_counter()
        fitted = model(landmarks).fit(*partitions(rows))
        wall = time.perf_counter() - start
    return {
        **{"rows": rows, "workers": workers, "landmarks": landmarks, "wall_seconds": wall, "deaths_while_adding": sum(deaths)},
        "difference": difference(answers(fitted), expected),
    }


def _adding(client: Client) -> list[str]:
    """Workers that add up rows now."""
    return [worker for worker, tasks in client.processing().items() if any("_sums" in str(task) for task in tasks)]


def difference(found: Array, expected: Array) -> float:
    """The largest of predictions and bounds, over the standard deviation of the predictions."""
    return float(np.abs(found - expected).max() / expected[:, 0].std())


def weighed(fitted: PNCRegressor) -> Record:
    """Bytes of what travels: sums of any number of rows, and what a worker is sent to make them with."""
    summed: Any = fitted._summed
    begun = replace(summed, sums=summed.sums.before(0))
    of_each = {"sums_bytes": summed.sums.without_spaces(), "begun_bytes": begun}
    return {name: len(pickle.dumps(value, protocol=5)) for name, value in of_each.items()}


def _cluster(workers: int) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--landmarks", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    rows = options.rows // PARTITIONS * PARTITIONS
    found: Record = {"machine": machine(), "features": FEATURES, "partitions": PARTITIONS, "runs": [], "travels": {}}
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    count_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for landmarks in options.landmarks:
            for some in (rows // FEWER // PARTITIONS * PARTITIONS, rows):
                whole = model(landmarks).fit(*of_all(some))
                expected, is_first = answers(whole), (some, landmarks) == (rows, options.landmarks[0])
                for workers in options.workers if is_first else options.workers[:1]:
                    found["runs"].append(measured(some, workers, landmarks, expected))
                    print(found["runs"][-1], flush=True)
                if is_first:
                    found["killed"] = killed(rows, max(options.workers), landmarks, expected)
                    print(found["killed"], flush=True)
            found["travels"][str(landmarks)] = weighed(whole)
    with replaced(options.out) as part:
        part.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
