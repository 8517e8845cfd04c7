"""Architectures by name: the three that the authors of ELMo published, and one for small machines.

`tiny` is what two ordinary cores can train in an afternoon; the built-in model is of this size.
"""

from __future__ import annotations

from elmokit.bilm.config import LSTM, BiLMConfig, CharCNN

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

SIZES = {
    size: BiLMConfig(
        char_cnn=CharCNN(filters=_FILTERS[:widths], highways=highways),
        lstm=LSTM(cells=cells, width=width),
    )
    for size, cells, width, highways, widths in (
        ("tiny", 512, 128, 1, 5),
        ("small", 1024, 128, 1, 7),
        ("medium", 2048, 256, 1, 7),
        ("original", 4096, 512, 2, 7),
    )
}
