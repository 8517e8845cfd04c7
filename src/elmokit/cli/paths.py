"""The type of options that name a file or a directory."""

import click

PATH = click.Path(readable=False)
"""A path. Whether it can be read is checked by what reads it, with one line of error; an output is
not read at all."""
