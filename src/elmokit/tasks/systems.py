"""The name of a system: what its settings ask for that is not usual.

Runs are kept under these names, so that a comparison and the analyses of the same task, given the
same directory, share what they have trained.
"""

from __future__ import annotations

from elmokit.tasks.settings import NONE, Settings
from elmokit.tasks.trials import Trial

BASELINE, WITH_ELMO = "baseline", "elmo"
"""A system's name begins with one of them."""


def usual(settings: Settings) -> Settings:
    """The same system, with what makes no difference to it as it is by default.

    Without ELMo nothing depends on how it is mixed; λ draws only the weights of all layers; and the
    task's own place need not be named.
    """
    plain = Settings(task=settings.task)
    if settings.baseline:
        return settings.replace(place=None, layers=plain.layers, l2=plain.l2, tune=False)
    return settings.replace(
        place=None if settings.place == settings.sister.PLACE else settings.place,
        l2=settings.l2 if settings.layers == "all" else plain.l2,
    )


def system_of(settings: Settings) -> str:
    """Such as `baseline`, `elmo`, `elmo-last`, `elmo-l2=1`, `elmo-output` or `elmo-10%`.

    It does not say which model, seed, vectors and sizes: those are the same in a whole directory.
    """
    asked, plain = usual(settings), Settings(task=settings.task)
    parts = [
        BASELINE if asked.baseline else WITH_ELMO,
        asked.layers if asked.layers != plain.layers else "",
        f"l2={asked.l2:g}" if asked.l2 != plain.l2 else "",
        asked.place or "",
        "tuned" if asked.tune else "",
        f"{100 * asked.share:g}%" if asked.share != 1 else "",
    ]
    return "-".join(part for part in parts if part)


def trial_of(settings: Settings) -> Trial:
    """The run of a system that the settings ask for."""
    return Trial(system_of(settings), usual(settings))


def without_elmo(settings: Settings) -> Settings:
    """The baseline of a system."""
    return usual(settings.replace(elmo=NONE))
