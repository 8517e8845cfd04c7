"""Architectures by name: the three that the authors of ELMo published, and a smaller one.

`tiny` can be trained on two ordinary cores in an afternoon; the built-in model has this size.
"""

from __future__ import annotations

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

SIZES = {
    size: BiLMConfig(
        char_cnn=CharCNNConfig(filters=_FILTERS[:widths], highways=highways),
        lstm=LSTMConfig(cells=cells, width=width),
    )
    for size, cells, width, highways, widths in (
        ("tiny", 512, 128, 1, 5),
        ("small", 1024, 128, 1, 7),
        ("medium", 2048, 256, 1, 7),
        ("original", 4096, 512, 2, 7),
    )
}
"""Architectures by name, smallest first."""
