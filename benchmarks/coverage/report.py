"""The scoreboard as a page of Markdown, from the records that run.py wrote.

python benchmarks/coverage/report.py records.jsonl --out results/coverage.md
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from problems import CELLS, PAPER_CELLS

from unseed import replaced

HERE = Path(__file__).parent
ENOUGH = 20
"""Data sets below which the worst points are those of chance."""
ORACLE = 2 * 1.959963984540054


class Board:
    """Records by method and cell."""

    def __init__(self, paths: list[Path]) -> None:
        self.records: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
        self.errors: list[dict] = []
        for path in paths:
            for record in map(json.loads, path.open()):
                if "error" in record:
                    self.errors.append(record)
                else:
                    self.records[record["method"]][record["cell"]].append(record)

    def summary(self, method: str, cell) -> dict | None:
        runs = self.records[method].get(cell.name)
        if not runs:
            return None
        rmse = np.sqrt(np.mean([run["rmse"] ** 2 for run in runs]))
        points = np.array([[int(c) for c in run["covered"]] for run in runs]).mean(axis=0)
        domain = np.sort(points[:200])
        return {
            "runs": len(runs),
            "coverage": np.mean([run["coverage"] for run in runs]),
            "worst": domain[: max(1, len(domain) // 20)].mean() if len(runs) >= ENOUGH else np.nan,
            "last": points[-1],
            "last_width": np.mean([run["last_width"] for run in runs]),
            "ratio": np.mean([run["width"] for run in runs]) / (ORACLE * rmse) if rmse > 0 else np.nan,
            "rmse": rmse,
            "fit_seconds": np.mean([run["fit_seconds"] for run in runs]),
            "warned": np.mean([bool(run.get("warnings")) for run in runs]),
        }

    def gaussian_process(self, cell) -> dict | None:
        """The better of the two, run by run: smaller RMSE for accuracy, larger likelihood for coverage."""
        both = [self.records[name].get(cell.name, []) for name in ("gaussian_process", "gaussian_process_relevance")]
        pairs = [(a, b) for a in both[0] for b in both[1] if a["repetition"] == b["repetition"]]
        if not pairs:
            return None
        likelier = [max(pair, key=lambda run: run["log_likelihood"]) for pair in pairs]
        return {
            "repetitions": {pair[0]["repetition"] for pair in pairs},
            "rmse": np.sqrt(np.mean([min(run["rmse"] for run in pair) ** 2 for pair in pairs])),
            "coverage": np.mean([run["coverage"] for run in likelier]),
            "seconds": np.mean([pair[1]["fit_seconds"] for pair in pairs]),
        }


def share(values) -> str:
    values = list(values)
    return f"{sum(values)} of {len(values)} ({100 * np.mean(values):.0f} %)" if values else "none"


def board_table(board: Board, cells) -> list[str]:
    lines = [
        "| cell | runs | coverage | worst 5 % | width / oracle | RMSE | fit, s | warned | GP RMSE | GP coverage |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        ours, theirs = board.summary("unseed", cell), board.gaussian_process(cell)
        if ours is None:
            continue
        gp = f"{theirs['rmse']:.4g} | {theirs['coverage']:.2f}" if theirs else "| "
        worst = "" if np.isnan(ours["worst"]) else f"{ours['worst']:.2f}"
        lines.append(
            f"| {cell.name} | {ours['runs']} | {ours['coverage']:.3f} | {worst} | {ours['ratio']:.2f} | "
            f"{ours['rmse']:.4g} | {ours['fit_seconds']:.1f} | {ours['warned']:.1f} | {gp} |"
        )
    return lines


def against_gp(board: Board, cells, same_machine: bool) -> list[str]:
    ratios, closer, faster = [], [], []
    for cell in cells:
        theirs = board.gaussian_process(cell)
        if theirs is None:
            continue
        runs = [r for r in board.records["unseed"].get(cell.name, []) if r["repetition"] in theirs["repetitions"]]
        if not runs:
            continue
        ratios.append((np.sqrt(np.mean([r["rmse"] ** 2 for r in runs])) / theirs["rmse"], cell.name))
        coverage = np.mean([r["coverage"] for r in runs])
        closer.append(abs(coverage - 0.95) <= abs(theirs["coverage"] - 0.95))
        if same_machine and cell.n == 1024:
            faster.append(theirs["seconds"] / np.mean([r["fit_seconds"] for r in runs]))
    if not ratios:
        return ["No records of the Gaussian process."]
    worst = sorted(ratios)[-3:]
    return [
        f"- RMSE at or below the Gaussian process: {share(r <= 1 for r, _ in ratios)}; above 1.3 times: "
        f"{share(r > 1.3 for r, _ in ratios)}; largest: " + ", ".join(f"{r:.2f} ({name})" for r, name in reversed(worst)),
        f"- Coverage as close to 0.95 or closer: {share(closer)}.",
        f"- `fit` at n = 1024 against the process with relevance, times faster: median {np.median(faster):.1f}, "
        f"smallest {min(faster):.1f} ({len(faster)} cells)."
        if faster
        else "",
    ]


def page(board: Board, same_machine: bool) -> str:
    ours = [(cell, s) for cell in CELLS if (s := board.summary("unseed", cell))]
    paper = [(cell, s) for cell in PAPER_CELLS if (s := board.summary("unseed", cell))]
    everything = ours + paper
    low = [s["warned"] >= 0.5 for _, s in everything if s["coverage"] < 0.9]
    good = [s["warned"] >= 0.5 for _, s in everything if s["coverage"] >= 0.95]
    lines = ["# Coverage of the truth: the scoreboard", "", "Defaults, 95 % level, 200 points of the domain, no tuning.", ""]
    lines[2] += (
        f" Data sets for each problem: {max(s['runs'] for _, s in ours)}. So few say where to look, and measure no coverage."
    )
    lines += [
        f"- Cells: {len(ours)} problems and {len(paper)} settings of the paper.",
        f"- Coverage at least 0.93: {share(s['coverage'] >= 0.93 for _, s in ours)}; at least 0.88: "
        f"{share(s['coverage'] >= 0.88 for _, s in ours)}; smallest {min(s['coverage'] for _, s in ours):.3f}.",
        f"- Width at most 3 times the oracle's: {share(s['ratio'] <= 3 for _, s in ours)}; median "
        f"{np.median([s['ratio'] for _, s in ours]):.2f}.",
    ]
    if paper:
        lines += [
            f"- Paper's settings: coverage at least 0.95 in {share(s['coverage'] >= 0.95 for _, s in paper)}, smallest "
            f"{min(s['coverage'] for _, s in paper):.3f}; worst 5 % of points at least 0.85 in "
            f"{share(s['worst'] >= 0.85 for _, s in paper if s['runs'] >= ENOUGH)}; at x0 on average "
            f"{np.mean([s['last'] for _, s in paper]):.3f}, width there "
            f"{np.median([s['last_width'] for _, s in paper]):.2g} (median).",
        ]
    lines += [
        f"- Warned by `diagnose()`: {share(low)} of the cells below 0.9, {share(good)} of those at 0.95 or above.",
        *against_gp(board, CELLS + PAPER_CELLS, same_machine),
        f"- Fits that failed: {len(board.errors)}.",
        "",
        *board_table(board, CELLS + PAPER_CELLS),
        "",
        "Other methods, mean over the cells they were run on:",
        "",
        "| method | cells | coverage | cells at 0.93 or above | width / oracle (median) | RMSE / ours (median) | fit, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in sorted(board.records):
        rows = [(s, board.summary("unseed", c)) for c in CELLS + PAPER_CELLS if (s := board.summary(method, c))]
        ratio = np.median([s["rmse"] / o["rmse"] for s, o in rows if o]) if any(o for _, o in rows) else np.nan
        lines.append(
            f"| {method} | {len(rows)} | {np.mean([s['coverage'] for s, _ in rows]):.3f} | "
            f"{np.mean([s['coverage'] >= 0.93 for s, _ in rows]):.2f} | {np.median([s['ratio'] for s, _ in rows]):.2f} | "
            f"{ratio:.2f} | {np.mean([s['fit_seconds'] for s, _ in rows]):.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path, default=[HERE / "records.jsonl"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--same-machine", action="store_true", help="all records are of one machine: compare times")
    options = parser.parse_args()
    text = page(Board(options.records), options.same_machine)
    if options.out:
        with replaced(options.out) as part:
            part.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
