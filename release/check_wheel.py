"""Use a wheel as a stranger would: `python release/check_wheel.py dist/ripplevec-….whl`.

For every Python it is meant for: an empty environment, nothing but the wheel and what it asks for, the lines of the
README, a file turned into vectors, and, with the extra that says so, a short demo.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
OTHER_EXTRAS = ("ray", "fastapi", "sklearn", "redis", "confluent_kafka", "usearch", "cupy")


def main(wheel: Path) -> None:
    """Check the wheel on every Python there is; say aloud which there is not."""
    checked = 0
    for version in PYTHONS:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not on this machine, NOT checked", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="ripplevec-wheel-") as folder:
            check(wheel.resolve(), python, Path(folder))
        print(f"Python {version}: installed, README, embed and demo run", flush=True)
        checked += 1
    if not checked:
        sys.exit(f"none of Python {', '.join(PYTHONS)} was found")


def interpreter(version: str) -> str | None:
    """A Python of this version that runs: on the path, or among those that pyenv keeps."""
    for python in candidates(version):
        done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True)
        if done.stdout.decode().strip() == version:
            return python
    return None


def candidates(version: str) -> Iterator[str]:
    """Where a Python of this version may be."""
    yield sys.executable
    if found := shutil.which(f"python{version}"):
        yield found
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for path in sorted(kept.glob(f"{version}.*/bin/python{version}"), reverse=True))


def check(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel into an empty environment and use it there."""
    subprocess.run([python, "-m", "venv", folder / "env"], check=True)
    inside = Inside(folder)
    inside.run("pip", "install", "--quiet", str(wheel))
    present = f"import importlib.util as u; print([n for n in {OTHER_EXTRAS!r} if u.find_spec(n)])"
    expect(inside.run("python", "-c", present).strip() == "[]", "only what the wheel itself asks for is installed")
    inside.run("python", "-c", readme_lines())
    (folder / "edges.csv").write_text("src,dst\n" + "".join(f"{a},{a * 7 % 50}\n" for a in range(1, 50)))
    inside.run("ripplevec", "embed", "edges.csv", "-o", "vectors.csv", "--dim", "8")
    expect((folder / "vectors.csv").read_text().count("\n") == 50, "a line for each of 49 vertices, and a heading")
    inside.run("pip", "install", "--quiet", f"{wheel}[demo]")
    result = json.loads(inside.run("ripplevec", "demo", "--vertices", "600", "--out", "pictures", "--json"))
    expect(all(Path(folder, picture).stat().st_size for picture in result["pictures"]), "pictures of the demo")


class Inside:
    """Commands of one environment, with nothing of ours around them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "env" / "bin"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(self, program: str, *arguments: str) -> str:
        """What a program of the environment prints; all of its words, and the end, where it fails."""
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def readme_lines() -> str:
    """The first Python of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert found is not None
    return found[1]


def expect(held: bool, what: str) -> None:
    """Leave where something does not hold."""
    if not held:
        sys.exit(f"expected: {what}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python release/check_wheel.py WHEEL")
    main(Path(sys.argv[1]))
