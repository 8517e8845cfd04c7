"""Sentiment classification: how positive a sentence is, in five classes or two."""

from elmokit.tasks.sentiment import data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="sentiment",
    title="Sentiment classification",
    paper="biattentive classification network (McCann et al. 2017, arXiv:1708.00107)",
    placement="both",
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
    prepare=data.prepare,
)
