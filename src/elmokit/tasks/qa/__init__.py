"""Question answering: the span of a passage that answers a question (SQuAD 1.1).

`data.py` reads passages with questions, `model.py` is BiDAF with self-attention, `answers.py` has
its predictions, `metric.py` the official exact match and F1.
"""

from elmokit.tasks.qa import answers, data, metric, model
from elmokit.tasks.task import Task

TASK = Task(
    name="qa",
    title="Question answering",
    paper="BiDAF with self-attention (Clark & Gardner 2017, arXiv:1710.10723)",
    placement="both",
    main_score=metric.MAIN_SCORE,
    arguments=data.ARGUMENTS,
    presets=model.PRESETS,
    Sizes=model.Sizes,
    Model=model.Model,
    read=data.read,
    parse=data.parse,
    write=answers.write,
    to_record=answers.to_record,
    render=answers.render,
    labels=data.labels,
    label_set=data.label_set,
    score=metric.score,
)
