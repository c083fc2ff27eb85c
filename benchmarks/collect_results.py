"""Merge records of several runs or machines and write their summaries to results/.

python benchmarks/collect_results.py FOLDER [FOLDER …]

Folders are those given to `unseed reproduce --out`. Records of the same experiment are put together; the command in a summary
names how many repetitions of which methods there are.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from unseed_paper.experiment import Experiment
from unseed_paper.records import RecordFile
from unseed_paper.reproduction import write_summary
from unseed_paper.summary import summarise

RESULTS = Path(__file__).parent.parent / "results"


def collect(name: str, paths: list[Path]) -> None:
    table, protocol, engine = name.split(".")
    records: dict = {}
    for path in paths:
        records = RecordFile(path).read() | records
    methods = tuple(dict.fromkeys(method for _, _, method in records))
    longest = max(repetition for _, repetition, _ in records) + 1
    experiment = Experiment(table, protocol, engine, longest, methods)
    ordered = tuple(m for m in Experiment(table, protocol, "kernel").methods if m in methods)
    experiment = Experiment(table, protocol, engine, longest, ordered)
    summary = summarise(experiment, records.values())
    summary["command"] = "; ".join(_commands(experiment, records))
    write_summary(summary, RESULTS / f"summary.{name}.json")
    print(f"{name}: {len(records)} records, {summary['command']}")


def _commands(experiment: Experiment, records: dict) -> list[str]:
    """One for each number of repetitions that all settings of some methods have."""
    found = Counter((method, setting) for setting, _, method in records)
    fewest = {m: min(found[m, s.name] for s in experiment.settings) for m in experiment.methods}
    by_number = defaultdict(list)
    for method, number in fewest.items():
        by_number[number].append(method)
    name = (experiment.table, experiment.protocol, experiment.engine)
    return [Experiment(*name, number, tuple(methods)).command for number, methods in sorted(by_number.items()) if number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    found = defaultdict(list)
    for folder in parser.parse_args().folders:
        for path in sorted(folder.glob("records.*.jsonl")):
            found[path.name.removeprefix("records.").removesuffix(".jsonl")].append(path)
    RESULTS.mkdir(exist_ok=True)
    for name, paths in sorted(found.items()):
        collect(name, paths)


if __name__ == "__main__":
    main()
