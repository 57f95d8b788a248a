"""Entry point of `python -m ripplevec`, the same as the command `ripplevec`."""

from ripplevec.cli.main import run

run()
