"""Semantic role labeling: who did what to whom, when and where, for each predicate."""

from elmokit.tasks.srl import data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="srl",
    title="Semantic role labeling",
    paper="deep highway BiLSTM with constrained decoding (He et al. 2017)",
    placement="input",
    main_score=metric.MAIN_SCORE,
    arguments=data.ARGUMENTS,
    presets=model.PRESETS,
    Sizes=model.Sizes,
    Model=model.Model,
    read=data.read,
    parse=data.parse,
    from_tokens=data.from_tokens,
    write=data.write,
    to_record=data.to_record,
    render=data.render,
    labels=data.labels,
    label_set=data.label_set,
    score=metric.score,
)
