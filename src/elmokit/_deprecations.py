"""Old names of the public API: they still work, and warn once with the name to use instead.

A renamed function, class or method keeps its old name for at least one minor version. What a
package exports is renamed in its call of `lazy_exports`; a method calls `warn_renamed`.
"""

from __future__ import annotations

import warnings

_warned: set[str] = set()


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn once per process that a public name has changed.

    Args:
        old: The name that was used, such as `"Recipe.but"`.
        new: The name to use instead.
        stacklevel: Frames between this function and the user's code; 3 where a deprecated method
            calls it.
    """
    if old in _warned:
        return
    _warned.add(old)
    warnings.warn(
        f"{old} was renamed and will be removed in elmokit 1.0; use {new}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
