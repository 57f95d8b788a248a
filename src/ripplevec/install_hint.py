"""Installation commands for error messages, matching the way this copy of the package was installed.

The package metadata record where a distribution came from (`direct_url.json`, PEP 610) unless it came from a package
index. A command such as `pip install 'ripplevec[serve]'` works for a package index only.
"""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

NAME = "ripplevec"


def install_command(extra: str) -> str:
    """Return the command that adds an optional dependency group to this installation."""
    checkout, editable = _checkout()
    if checkout is not None:
        return f"cd {quote(str(checkout))} && pip install {'-e ' if editable else ''}'.[{extra}]'"
    origin = _origin()
    if file := _local_file(origin):
        return f"pip install {quote(f'{file}[{extra}]')}"
    if url := _remote_url(origin):
        return f"pip install '{NAME}[{extra}] @ {url}'"
    return f"pip install '{NAME}[{extra}]'"


def upgrade_advice() -> str:
    """Return a one-line instruction to upgrade this installation."""
    checkout, editable = _checkout()
    if checkout is not None:
        command = f"cd {quote(str(checkout))} && pip install {'-e ' if editable else ''}."
        return f"update the source in {checkout}, then run {command}"
    origin = _origin()
    if file := _local_file(origin):
        return f"install a newer file than {file} with pip install"
    if "vcs_info" in origin:
        return f"pip install -U '{NAME} @ {origin['vcs_info']['vcs']}+{origin['url']}'"
    if url := _remote_url(origin):
        return f"install a newer file than {url} with pip install"
    return f"pip install -U {NAME}"


def _origin() -> dict[str, Any]:
    """Return the recorded origin of the distribution; empty if it came from a package index or is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and needed for errors only

    try:
        text = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    try:
        origin = json.loads(text or "{}")
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) and isinstance(origin.get("url"), str) else {}


def _checkout() -> tuple[Path | None, bool]:
    """Return the source directory of this package, None if there is none, and whether the install is editable."""
    origin = _origin()
    if "dir_info" in origin:
        return _path(origin["url"]), bool(origin["dir_info"].get("editable"))
    root = Path(__file__).resolve().parents[2]
    imported_from_source = (
        not origin and Path(__file__).parent.parent.name == "src" and (root / "pyproject.toml").exists()
    )
    return (root if imported_from_source else None), False


def _local_file(origin: dict[str, Any]) -> str | None:
    """Return the path of the wheel or archive the package was installed from, or its name if the file is gone."""
    if "archive_info" not in origin or not origin["url"].startswith("file:"):
        return None
    path = _path(origin["url"])
    return str(path) if path.exists() else path.name


def _remote_url(origin: dict[str, Any]) -> str | None:
    """Return the URL the package was installed from, with version control system and revision, or None."""
    if "vcs_info" in origin:
        info = origin["vcs_info"]
        revision = info.get("requested_revision") or info.get("commit_id")
        return f"{info['vcs']}+{origin['url']}" + (f"@{revision}" if revision else "")
    return origin["url"] if "archive_info" in origin else None


def _path(url: str) -> Path:
    from urllib.request import url2pathname  # loads a client for HTTP: only for error messages

    return Path(url2pathname(urlsplit(url).path))
