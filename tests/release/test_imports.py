"""What `import ripplevec` costs: nothing heavy, until a name is asked for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "scipy", "numba", "pyarrow", "typer", "rich", "ray")
MOST = 60  # modules, those of Python itself included


def test_nothing_heavy_is_imported():
    code = f"import sys, ripplevec; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_of_the_package_loads_few_modules():
    code = "import sys; before = set(sys.modules); import ripplevec; print(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < MOST
