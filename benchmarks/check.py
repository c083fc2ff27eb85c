"""Compare this machine's ratios with stored ones: `make benchmark-check`.

Ratios to a bare Cholesky factorisation and Gram matrix of the same run hardly depend on the machine; times do. A ratio may be
a half larger than stored.

python benchmarks/check.py             compare
python benchmarks/check.py --store     store this machine's ratios
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from unseed import benchmark

BASELINE, TOLERANCE, ROWS, REPETITIONS = Path(__file__).parent / "baseline.json", 1.5, 1024, 9
FLOOR = ("one bare Cholesky factorisation", "one bare Gram matrix")
SAME = "the same by KernelRidge, R + 1 times"


def ratios() -> dict[str, float]:
    """Ours over the floor, and ours over the same mathematics by scikit-learn."""
    seconds = benchmark.measure(ROWS, REPETITIONS, lambda _: None, (benchmark.OURS, *FLOOR, SAME))["seconds"]
    floor = sum(seconds[name] for name in FLOOR)
    return {
        "over one Gram matrix and one factorisation": seconds[benchmark.OURS] / floor,
        "over the same by KernelRidge": seconds[benchmark.OURS] / seconds[SAME],
    }


def main() -> int:
    found = ratios()
    if "--store" in sys.argv:
        BASELINE.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    stored = json.loads(BASELINE.read_text())
    for name, ratio in found.items():
        limit = TOLERANCE * stored[name]
        verdict = "kept" if ratio <= limit else "BROKEN"
        print(f"{name:45} {ratio:6.2f}   stored {stored[name]:.2f}, limit {limit:.2f}: {verdict}")
    return 0 if all(ratio <= TOLERANCE * stored[name] for name, ratio in found.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
