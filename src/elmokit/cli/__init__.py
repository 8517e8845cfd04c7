"""The command `elmo`: one file per command, and each command calls a public function.

The module of a command is imported when the command is used, and imports what it needs inside its
function, so that `elmo --help` is fast. Errors are one line on stderr; `--debug` shows the
traceback. Exit codes: 0 success, 1 error, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

import elmokit
from elmokit.cli.lazy import LazyGroup
from elmokit.cli.messages import describe_for_command_line, is_out_of_memory
from elmokit.errors import ElmoError
from elmokit.extras import explain

COMMANDS = (
    "embed",
    "inspect",
    "convert",
    "settle",
    "models",
    "bench",
    "plan",
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
    "serve",
)
"""Names of the commands; each is the function `command` of the module of that name."""


@click.group(
    cls=LazyGroup,
    modules={name: f"elmokit.cli.{name}" for name in COMMANDS},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(elmokit.__version__, "-V", "--version", prog_name="elmokit")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
def elmo(debug: bool) -> None:
    """ELMo: contextual word vectors from a character-level language model.

    \b
    Embed text and work with models:
      elmo embed "She went to the bank."            show the vectors of a sentence
      elmo embed --file text.txt --out vectors.h5   embed a file
      elmo embed -f F --word bank --picture P.html  draw the uses of a word
      elmo substitutes "She went to the bank."      show the likeliest words at each position
      elmo inspect MODEL                            describe a model
      elmo convert MODEL DIR                        convert a model to another format
      elmo settle MODEL TEXT --out DIR              let a model settle on text of its language
      elmo models                                   list the published models
      elmo bench --size small                       measure the speed of this machine

    \b
    Embed more text than one process can:
      elmo embed --file F --out DIR --shards 50 --workers 2   in shards, by worker processes
      elmo plan --words 1e11 --model original --dtype int8    estimate time, storage and cost

    \b
    Train language models:
      elmo corpus TEXT... --out CORPUS              prepare text for training
      elmo pretrain CORPUS --out DIR --minutes 60   train a new model
      elmo finetune MODEL TEXT... --out DIR         adapt a model to a domain
      elmo perplexity MODEL FILE                    measure how well a model predicts a text

    \b
    Train models for the six tasks of the paper:
      elmo task train ner --train F --dev F --out DIR     train a model for a task
      elmo task predict DIR "Ada lived in London."        use it
      elmo task compare ner --train F --dev F --out DIR   compare it with and without ELMo

    \b
    Analyze models:
      elmo analyze layers ner --train F … --runs DIR      measure which layers help a task
      elmo probe pos --train F --test F                   measure what each layer knows
      elmo neighbors play --in "They play." --corpus F    find the most similar uses of a word
      elmo change WORD... --then FILE --now FILE          measure how the use of words has changed
      elmo report MODEL                                   write all measurements to one page

    \b
    Serve models:
      elmo serve                                    vectors over HTTP, and a page to play with

    MODEL is a path (a directory, one file of a model, a zip archive) or a name; `builtin` is the
    English model in the package.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    options = args[: args.index("--")] if "--" in args else args
    debug = "--debug" in options
    if debug:
        args.remove("--debug")  # it may be given anywhere
    warnings.formatwarning = lambda message, *_, **__: f"elmo: warning: {message}\n"
    hooks = threading.excepthook, sys.unraisablehook
    if not debug:
        _keep_quiet_without_memory()
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
        # The reader of the output has closed it (`elmo … | head`), which is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ElmoError, OSError, MemoryError) as error:
        if debug:
            raise
        _exit_with_error(error)
    except ImportError as error:
        missing = explain(error, _command_name(args))
        if debug or (missing is None and not is_out_of_memory(error)):
            raise
        _exit_with_error(missing or MemoryError(f"there is not enough memory ({error})"))
    except Exception as error:
        if debug or not is_out_of_memory(error):
            raise
        _exit_with_error(MemoryError(f"there is not enough memory ({error})"))
    finally:
        threading.excepthook, sys.unraisablehook = hooks


def _keep_quiet_without_memory() -> None:
    """Let threads and destructors that have no memory print nothing: the command says it."""

    def quiet(report: Callable[[Any], object]) -> Callable[[Any], object]:
        def call(found: Any) -> None:
            with contextlib.suppress(MemoryError):  # even the hook has none
                if not is_out_of_memory(found.exc_value):
                    report(found)

        return call

    threading.excepthook = quiet(threading.excepthook)
    sys.unraisablehook = quiet(sys.unraisablehook)


def _exit_with_error(error: BaseException) -> NoReturn:
    message = describe_for_command_line(error)
    print(f"elmo: error: {message}", file=sys.stderr)
    sys.exit(1)


def _command_name(args: Sequence[str]) -> str:
    """Return the name of the command that the arguments call, such as `elmo task train`."""
    names: list[str] = ["elmo"]
    command: click.Command | None = elmo
    context = click.Context(elmo)
    for arg in args:
        if not isinstance(command, click.Group) or arg not in command.list_commands(context):
            break
        names.append(arg)
        try:
            command = command.get_command(context, arg)
        except ImportError:
            break
    return " ".join(names)
