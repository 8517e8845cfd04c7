"""Calls every function of the compiled kernel with wrong arguments, at any scale.

    python benchmarks/attack/kernel.py --cases 10000
    python benchmarks/attack/kernel.py --only softmax --only Network --seconds 600 --seed 7
    python benchmarks/attack/kernel.py --replay '{"function": "softmax", "seed": 3, …}'

Each case is a valid call of which up to three arguments were spoiled. It must return or raise an
ordinary Python exception, in a process that is still alive. A finding is printed with the case to
replay.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from kernel_calls import VALID_CALLS
from kernel_victim import Victim, random_case
from tally import Tally, parse_arguments


def replay(case: str) -> None:
    """Do one case, given as JSON, and print its outcome."""
    victim = Victim()
    outcome = victim.call(json.loads(case))
    victim.close()
    print(json.dumps(outcome))
    sys.exit(1 if outcome["finding"] else 0)


def main() -> None:
    """Run the attack."""
    if sys.argv[1:2] == ["--replay"]:
        replay(sys.argv[2])
    arguments = parse_arguments(__doc__, list(VALID_CALLS), cases=500)
    tally = Tally("kernel", arguments.seed, arguments.seconds)
    rng = np.random.default_rng(arguments.seed)
    victim = Victim()
    for _ in range(arguments.cases):
        for function in arguments.only or VALID_CALLS:
            if tally.is_over:
                break
            case = random_case(function, rng)
            outcome = victim.call(case)
            tally.outcomes[outcome["outcome"]] += 1
            finding = outcome["finding"]
            tally.add(function, f"{finding}; --replay '{json.dumps(case)}'" if finding else None)
    victim.close()
    tally.finish()


if __name__ == "__main__":
    main()
