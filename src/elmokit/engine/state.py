"""The initial LSTM state of a sentence: three policies, and the texts of the settled state.

The published models were trained on one continuous stream and carry their LSTM state from sentence
to sentence, so an all-zero initial state is unlike anything they saw in training. The *settled*
state is the state after a fixed warm-up text: every sentence starts from it, so that a sentence's
vectors depend on that sentence alone.
"""

from __future__ import annotations

from typing import Literal, get_args

from elmokit.errors import InputError

StatePolicy = Literal["settled", "zero", "carry"]
"""Initial state of a sentence: settled, all zeros, or carried over from the previous call."""

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
"""The warm-up text, tokenized. Never change it: that would change every vector of every model that
was not saved with a settled state."""

PROTEIN_WARM_UP: tuple[tuple[str, ...], ...] = tuple(
    tuple(sequence)
    for sequence in (
        # human ubiquitin
        "MQIFVKTLTGKTITLEVEPSDTIENVKAKIQDKEGIPPDQQRLIFAGKQLEDGRTLSDYNIQKESTLHLVLRLRGG",
        # hen egg-white lysozyme
        "KVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAKFESNFNTQATNRNTDGSTDYGILQINSRWWCNDGRTPGSRNLCNIPC"
        "SALLSSDITASVNCAKKIVSDGNGMNAWVAWRNRCKGTDVQAWIRGCRL",
        # human insulin, precursor
        "MALWMRLLPLLALLALWGPDPAAAFVNQHLCGSHLVEALYLVCGERGFFYTPKTRREAEDLQVGQVELGGGPGAGSLQPL"
        "ALEGSLQKRGIVEQCCTSICSLYQLENYCN",
        # bovine pancreatic trypsin inhibitor
        "RPDFCLEPPYTGPCKARIIRYFYNAKAGLCQTFVYGGCRAKRNNFKSAEDCMRTCGGA",
        # human hemoglobin, subunit alpha
        "MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDMPNA"
        "LSALSDLHAHKLRVDPVNFKLLSHCLLVTLAAHLPAEFTPAVHASLDKFLASVSTVLTSKYR",
    )
)
"""The warm-up text of models of proteins, one residue per word. Never change it either."""


def check_policy(policy: str) -> StatePolicy:
    """Return the policy, or raise `InputError` if there is no such policy."""
    if policy not in get_args(StatePolicy):
        raise InputError(f"state is {policy!r}; expected 'settled', 'zero' or 'carry'")
    return policy  # type: ignore[return-value]
