"""Merge records of several runs or machines and write their summaries to results/.

python benchmarks/collect_results.py FOLDER [FOLDER …]

Folders are those given to `unseed reproduce --out`. Records of the same experiment are put together; the command in a summary
names how many repetitions of which methods there are.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
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
    summary = summarise(Experiment(table, protocol, engine), records.values())
    write_summary(summary, RESULTS / f"summary.{name}.json")
    print(f"{name}: {len(records)} records; {summary['command']}")


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
