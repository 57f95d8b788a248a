"""Generate the blocking client from the asyncio client, so that every method is written once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from unasync import Rule, unasync_files

CLIENT = Path(__file__).resolve().parents[1] / "src/ripplevec/client"
SOURCE, TARGET = CLIENT / "async_client.py", CLIENT / "sync_client.py"

HEADER = "# Generated from async_client.py by `make client`. Edit that file instead.\n"

NAMES = {
    "AsyncClient": "Client",
    "AsyncRetrying": "Retrying",
    "aclose": "close",
    "aconnect_sse": "connect_sse",
    "aiter_sse": "iter_sse",
    "aread": "read",
}
"""Names in code, in addition to those that unasync knows."""

DOCSTRINGS = {
    "The asyncio client of the service. `make client` generates the blocking client from this file.": (
        "The blocking client of the service."
    ),
    "An asyncio client of": "A client of",
    "async with ripplevec.AsyncClient": "with ripplevec.Client",
    "await client.": "client.",
}


def generate_client() -> str:
    """Return the source text of the blocking client."""
    with TemporaryDirectory() as folder:
        copy, generated = Path(folder, SOURCE.name), Path(folder, TARGET.name)
        copy.write_text(SOURCE.read_text())
        unasync_files([str(copy)], [Rule(f"/{SOURCE.name}", f"/{TARGET.name}", NAMES)])
        text = generated.read_text()
    for before, after in DOCSTRINGS.items():
        if before not in text:
            raise ValueError(f"{SOURCE.name}: expected a docstring with {before!r}. Update {Path(__file__).name}.")
        text = text.replace(before, after)
    return _format(HEADER + text)


def _format(text: str) -> str:
    """Sort the imports and format the code with the settings of this project."""
    for command in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        arguments = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(generate_client())
