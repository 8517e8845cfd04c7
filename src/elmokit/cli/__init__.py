"""The command `elmo`: words to function calls, one file a command.

A command's module is imported when it is used, and imports what it needs inside its function, so
that `elmo --help` answers at once. Errors are one line on stderr; `--debug` shows the traceback.
Exit codes: 0 done, 1 it could not be done, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

import click

import elmokit
from elmokit.cli.lazy import Lazy
from elmokit.errors import ElmoError

COMMANDS = (
    "embed",
    "inspect",
    "convert",
    "models",
    "bench",
    "corpus",
    "pretrain",
    "finetune",
    "perplexity",
    "substitutes",
    "task",
    "analyze",
    "probe",
    "neighbors",
    "change",
    "report",
)
"""Each is the function `command` of the module of that name beside this file."""


@click.group(
    cls=Lazy,
    modules={name: f"elmokit.cli.{name}" for name in COMMANDS},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(elmokit.__version__, "-V", "--version", prog_name="elmokit")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def elmo(debug: bool) -> None:
    """ELMo: contextual word vectors from characters.

    \b
    elmo embed "She went to the bank."            look at a sentence's vectors
    elmo embed --file text.txt --out vectors.h5   embed a file
    elmo substitutes "She went to the bank."      what a model expects at each place
    elmo inspect MODEL                            what a model is
    elmo convert MODEL DIR                        from one format to another
    elmo models                                   published models, by name
    elmo bench --size small                       how fast this machine is

    \b
    elmo corpus TEXT... --out CORPUS              make text ready for training
    elmo pretrain CORPUS --out DIR --minutes 60   a new model from a corpus
    elmo finetune MODEL TEXT... --out DIR         adapt a model to a domain
    elmo perplexity MODEL FILE                    how well a model predicts a text

    \b
    elmo task train ner --train F --dev F --out DIR    a model of one of the six tasks
    elmo task predict DIR "Ada lived in London."       what it finds
    elmo task compare ner --train F --dev F --out DIR  what ELMo brings

    \b
    elmo analyze layers ner --train F … --runs DIR     what of ELMo helps a task
    elmo probe pos --train F --test F                  what each layer of a model knows
    elmo neighbors play --in "They play." --corpus F   the most similar uses
    elmo change WORD... --then FILE --now FILE         how the uses of words have changed
    elmo report MODEL                                  all that was measured, as one page

    MODEL is a path (a directory, one file of a model, a zip archive) or a name; `builtin` is the
    English model in the package.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    options = args[: args.index("--")] if "--" in args else args
    debug = "--debug" in options
    if debug:
        args.remove("--debug")  # so that it may stand anywhere
    warnings.formatwarning = lambda message, *_, **__: f"elmo: warning: {message}\n"
    try:
        code = elmo.main(args, prog_name="elmo", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`elmo … | head`); that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ElmoError, OSError, MemoryError) as error:
        if debug:
            raise
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"elmo: error: {message}", file=sys.stderr)
        sys.exit(1)
