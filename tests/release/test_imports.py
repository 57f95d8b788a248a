"""What `import ripplet` costs: nothing heavy, until a name is asked for."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

HEAVY = ("numpy", "scipy", "numba", "pyarrow", "typer", "rich", "ray")
MOST = 5  # times what Python itself needs to begin and to end


def seconds(code: str) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return perf_counter() - began


def test_nothing_heavy_is_imported():
    code = f"import sys, ripplet; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_takes_hardly_longer_than_python():
    """The best of three, side by side: what else the machine does counts for both."""
    pairs = [(seconds("import ripplet"), seconds("pass")) for _ in range(3)]
    ours, bare = map(min, zip(*pairs, strict=True))
    assert ours < MOST * bare
