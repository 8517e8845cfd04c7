"""Run the command `elmo` with `python -m elmokit`."""

from elmokit.cli import main

main()
