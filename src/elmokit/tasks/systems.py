"""Names of systems: how the settings of a run differ from the defaults.

Runs are stored in directories of these names, so that a comparison and the analyses of the same
task share their trained models if they are given the same directory.
"""

from __future__ import annotations

from elmokit.tasks.settings import NONE, Settings
from elmokit.tasks.trials import Trial

BASELINE, WITH_ELMO = "baseline", "elmo"
"""The name of every system begins with one of them."""


def canonical(settings: Settings) -> Settings:
    """Return the same system, with every setting that has no effect on it at its default.

    Without ELMo nothing depends on how it is mixed; λ only affects the weights of all layers; and
    the task's own placement need not be named.
    """
    default = Settings(task=settings.task)
    if settings.baseline:
        return settings.replace(placement=None, layers=default.layers, l2=default.l2, tune=False)
    own = settings.definition.placement
    return settings.replace(
        placement=None if settings.placement == own else settings.placement,
        l2=settings.l2 if settings.layers == "all" else default.l2,
    )


def system_name(settings: Settings) -> str:
    """Return the name of a system, such as `baseline`, `elmo`, `elmo-last`, or `elmo-10%`.

    It does not contain model, seed, vectors and sizes: those are the same in a whole directory.
    """
    system, default = canonical(settings), Settings(task=settings.task)
    parts = [
        BASELINE if system.baseline else WITH_ELMO,
        system.layers if system.layers != default.layers else "",
        f"l2={system.l2:g}" if system.l2 != default.l2 else "",
        system.placement or "",
        "tuned" if system.tune else "",
        f"{100 * system.share:g}%" if system.share != 1 else "",
    ]
    return "-".join(part for part in parts if part)


def make_trial(settings: Settings) -> Trial:
    """Return the training run for these settings."""
    return Trial(system_name(settings), canonical(settings))


def without_elmo(settings: Settings) -> Settings:
    """Return the settings of the baseline: the same system without ELMo."""
    return canonical(settings.replace(elmo=NONE))
