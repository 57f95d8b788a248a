"""Entry point of `python -m ripplevec.cli`, the same as the command `ripplevec`."""

from ripplevec.cli.main import run

run()
