"""Named entity recognition: persons, places and whatever else a training set labels."""

from elmokit.tasks.ner import data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="ner",
    title="Named entity recognition",
    paper="BiLSTM-CRF with a character CNN (Lample et al. 2016, Peters et al. 2017)",
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
