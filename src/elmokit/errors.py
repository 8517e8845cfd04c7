"""The exceptions that elmokit raises for problems a user can fix.

Every message says what was found, what was expected and what to do; the command line prints it on
one line. All of them are subclasses of `ElmoError`, so that one `except` clause catches them all.
"""

LONGEST_MESSAGE = 1500
"""Characters of a message at most; a hostile file can be quoted in one."""


class ElmoError(Exception):
    """Base class of all elmokit errors."""

    def __str__(self) -> str:
        text = super().__str__()
        return text if len(text) <= LONGEST_MESSAGE else f"{text[:900]} … {text[-500:]}"


class ConfigError(ElmoError, ValueError):
    """A model configuration has a missing, invalid or contradictory option."""


class WeightsError(ElmoError, ValueError):
    """The weights do not fit the architecture: an array is missing, misshapen or not finite."""


class FormatError(ElmoError):
    """A file is damaged, incomplete, or not in the expected format."""


class ModelNotFound(FormatError, FileNotFoundError):
    """No model was found at the given path or under the given name."""


class InputError(ElmoError, ValueError):
    """An argument or a text cannot be used; the message says which one and where."""


class InputTypeError(InputError, TypeError):
    """An argument has the wrong type; the message says which one and where."""


class WriteError(ElmoError, OSError):
    """A file cannot be written; the message names it, the reason, and what was kept."""

    path: str = ""
    """The file or directory."""
    reason: str = ""
    """Why it cannot be written, such as `No space left on device`."""


class MissingExtra(ElmoError, ImportError):
    """An optional package is not installed; the message gives the pip command that installs it."""


class TrainingError(ElmoError):
    """A training run cannot be started, continued or resumed."""
