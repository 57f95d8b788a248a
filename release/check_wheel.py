"""Check a wheel in empty environments: `python release/check_wheel.py dist/ripplevec-….whl`.

For every supported Python version, the wheel is installed with only its own dependencies. The example of the README,
`ripplevec embed` and, with the extra `demo`, a short demo must run.
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
    """Check the wheel with every Python version on this machine; report the missing ones."""
    checked = 0
    for version in PYTHONS:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not on this machine, NOT checked", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="ripplevec-wheel-") as folder:
            check(wheel.resolve(), python, Path(folder))
        print(f"Python {version}: installed, README, embed and demo run", flush=True)
        checked += 1
    if not checked:
        sys.exit(f"No supported Python found: expected one of {', '.join(PYTHONS)}.")


def find_python(version: str) -> str | None:
    """Return a working Python of this version, from the path or from pyenv; None if there is none."""
    for python in candidate_paths(version):
        done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True)
        if done.stdout.decode().strip() == version:
            return python
    return None


def candidate_paths(version: str) -> Iterator[str]:
    """Yield the paths where a Python of this version may be."""
    yield sys.executable
    if path := shutil.which(f"python{version}"):
        yield path
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for path in sorted(versions.glob(f"{version}.*/bin/python{version}"), reverse=True))


def check(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel into an empty environment and use it there."""
    subprocess.run([python, "-m", "venv", folder / "env"], check=True)
    environment = Environment(folder)
    environment.run("pip", "install", "--quiet", str(wheel))
    installed = f"import importlib.util as u; print([n for n in {OTHER_EXTRAS!r} if u.find_spec(n)])"
    expect(environment.run("python", "-c", installed).strip() == "[]", "no optional dependency is installed")
    environment.run("python", "-c", readme_example())
    (folder / "edges.csv").write_text("src,dst\n" + "".join(f"{a},{a * 7 % 50}\n" for a in range(1, 50)))
    environment.run("ripplevec", "embed", "edges.csv", "-o", "vectors.csv", "--dim", "8")
    expect((folder / "vectors.csv").read_text().count("\n") == 50, "a header and a line for each of 49 vertices")
    environment.run("pip", "install", "--quiet", f"{wheel}[demo]")
    result = json.loads(environment.run("ripplevec", "demo", "--vertices", "600", "--out", "pictures", "--json"))
    expect(all(Path(folder, picture).stat().st_size for picture in result["pictures"]), "nonempty pictures of the demo")


class Environment:
    """A virtual environment, isolated from the Python variables of the caller."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "env" / "bin"
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment and return its output; exit if it fails."""
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def readme_example() -> str:
    """Return the first Python example of the README."""
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert example is not None
    return example[1]


def expect(condition: bool, description: str) -> None:
    """Exit if a condition is false."""
    if not condition:
        sys.exit(f"expected: {description}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python release/check_wheel.py WHEEL")
    main(Path(sys.argv[1]))
