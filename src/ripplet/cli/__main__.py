"""`python -m ripplet.cli` is `ripplet`."""

from ripplet.cli.main import run

run()
