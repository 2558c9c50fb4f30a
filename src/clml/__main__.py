"""``python -m clml`` is the command ``clml``."""

from .cli import main

main(prog_name="clml")
