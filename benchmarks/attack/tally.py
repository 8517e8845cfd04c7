"""What the attacks of this directory share: their options, counts, and the last line they print."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence


def parse_arguments(
    description: str | None, kinds: Sequence[str], cases: int, *, numbered: bool = False
) -> argparse.Namespace:
    """Return the options of an attack from the command line; see `make_parser`."""
    return make_parser(description, kinds, cases, numbered=numbered).parse_args()


def make_parser(
    description: str | None, kinds: Sequence[str], cases: int, *, numbered: bool = False
) -> argparse.ArgumentParser:
    """Return a parser of the options that all attacks have.

    Args:
        description: What the attack does; its first line is shown by --help.
        kinds: Names of the kinds of cases.
        cases: Default number of cases.
        numbered: Whether cases have numbers, by which they can be repeated.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cases", type=int, default=cases, help=f"number of cases of each kind (default: {cases})"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="stop after so many seconds (default: no limit)",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--only", choices=kinds, action="append", help="only this kind of cases; may be repeated"
    )
    if numbered:
        parser.add_argument(
            "--first", type=int, default=0, help="number of the first case (default: 0)"
        )
    return parser


class Tally:
    """Counts of cases and what they have found; prints a line per finding."""

    def __init__(self, name: str, seed: int, seconds: float | None = None) -> None:
        """Start counting.

        Args:
            name: Name of the attack.
            seed: Random seed of the attack.
            seconds: Time after which `is_over` says so.
        """
        self.name, self.seed = name, seed
        self.counts: Counter[str] = Counter()
        """Number of cases, by kind."""
        self.outcomes: Counter[str] = Counter()
        """Number of times that something worth counting happened, such as a kill."""
        self.findings: list[str] = []
        """Descriptions of broken promises."""
        self._start, self._limit = time.monotonic(), seconds
        signal.signal(signal.SIGTERM, self._stop)  # the counts are printed all the same

    def _stop(self, *signal_and_frame: object) -> None:
        self._limit = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._limit is not None and time.monotonic() - self._start > self._limit

    def add(self, kind: str, finding: str | None = None) -> None:
        """Count a case, with what it has found, if anything."""
        self.counts[kind] += 1
        if finding is not None:
            self.find(kind, finding)

    def find(self, kind: str, finding: str) -> None:
        """Note and print a finding of a case that is counted elsewhere."""
        self.findings.append(f"{kind}: {finding}")
        print(f"FOUND {self.findings[-1]}", flush=True)

    def finish(self) -> None:
        """Print the counts and a line of JSON, and end the process: 1 if anything was found."""
        for kind, count in self.counts.items():
            print(f"{kind}: {count:,} cases")
        print(f"{sum(self.counts.values()):,} cases, {len(self.findings):,} findings")
        result = {
            "attack": self.name,
            "seed": self.seed,
            "seconds": round(time.monotonic() - self._start, 1),
            "cases": dict(self.counts),
            "outcomes": dict(self.outcomes),
            "findings": self.findings,
        }
        print(json.dumps(result))
        sys.exit(1 if self.findings else 0)
