"""Textual entailment: whether the second of two sentences follows from the first."""

from elmokit.tasks.nli import data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="nli",
    title="Textual entailment",
    paper="ESIM (Chen et al. 2017, arXiv:1609.06038)",
    placement="both",
    main_score=metric.MAIN_SCORE,
    arguments=data.ARGUMENTS,
    presets=model.PRESETS,
    Sizes=model.Sizes,
    Model=model.Model,
    read=data.read,
    parse=data.parse,
    write=data.write,
    to_record=data.to_record,
    render=data.render,
    labels=data.labels,
    label_set=data.label_set,
    score=metric.score,
)
