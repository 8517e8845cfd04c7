"""Coreference resolution: which mentions in a document refer to the same entity.

End-to-end span ranking on CoNLL-2012 files, scored by the average of MUC, B³ and CEAFφ4.
"""

from elmokit.tasks.coref import data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="coref",
    title="Coreference resolution",
    paper="end-to-end span ranking (Lee et al. 2017, arXiv:1707.07045)",
    placement="input",
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
