"""The few exceptions a user can meet.

Every message says what was found, what was expected and what to do; the command line prints it
in one line. All of them are `ElmoError`, so one `except` catches the family.
"""


class ElmoError(Exception):
    """Anything elmokit refuses to do, for a reason the user can act on."""


class ConfigError(ElmoError, ValueError):
    """An architecture that cannot be: a missing, wrong or contradictory option."""


class WeightsError(ElmoError, ValueError):
    """Arrays that do not belong to the architecture: missing, misshapen or not finite."""


class FormatError(ElmoError):
    """A file that is damaged, incomplete or something else than it should be."""


class ModelNotFound(FormatError, FileNotFoundError):
    """There is no model where one was expected."""


class InputError(ElmoError, ValueError):
    """An argument or a text that cannot be used; the message names its position."""


class InputTypeError(InputError, TypeError):
    """An argument of the wrong type; the message names its position."""


class MissingExtra(ElmoError, ImportError):
    """An optional package is needed; the message names the pip command."""


class TrainingError(ElmoError):
    """A run that cannot begin, go on or be resumed."""
