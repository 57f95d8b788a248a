"""`python -m ripplevec.cli` is `ripplevec`."""

from ripplevec.cli.main import run

run()
