"""Where a sentence starts from: the three policies, and the text that a model settles on.

The published models were trained on one endless text and carry their memory from sentence to
sentence, so that a sentence read from an empty memory sounds unlike anything they know. *Settled*
is the state after a fixed text: every sentence starts there, and its vectors depend on it alone.
"""

from __future__ import annotations

from typing import Literal, get_args

from elmokit.errors import InputError

Policy = Literal["settled", "zero", "carry"]

WARM_UP: tuple[tuple[str, ...], ...] = tuple(
    tuple(sentence.split())
    for sentence in (
        "The weather was fine , and the children went down to the river .",
        '" How many of them came back ? " she asked .',
        "In 1997 the company sold about 3,500 cars , most of them in Europe .",
        "Nobody knows why .",
        "He said that it would take some time before people could return to their homes .",
    )
)
"""A few sentences of ordinary text. Changing them changes every vector of every model that was not
saved with a settled state: don't."""


def check_policy(policy: str) -> Policy:
    """The policy, or an `InputError`."""
    if policy not in get_args(Policy):
        raise InputError(f"state is {policy!r}; expected 'settled', 'zero' or 'carry'")
    return policy  # type: ignore[return-value]
