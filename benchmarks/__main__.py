"""Command line: ``python -m benchmarks --quick --out results/benchmarks --only step oracle``."""

import argparse
import os
from pathlib import Path

from benchmarks import ONE_THREAD

if __name__ == "__main__":
    os.environ.update(ONE_THREAD)  # before the import of numpy
    from benchmarks.suite import TOPICS, main

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="shorter runs: two minutes instead of fifteen"
    )
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), metavar="DIR")
    parser.add_argument(
        "--only", nargs="+", choices=list(TOPICS), help="topics to run; all if not given"
    )
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out, arguments.only)
