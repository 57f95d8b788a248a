"""Installation commands in messages match the way the package was installed."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ripplevec import install_hint
from ripplevec.errors import MissingExtraError
from ripplevec.install_hint import install_command, upgrade_advice


class FakeDistribution:
    """An installed distribution that recorded this origin."""

    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._direct_url


@pytest.fixture
def installed_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Pretend that the package was installed into site-packages from an origin."""
    monkeypatch.setattr(install_hint, "__file__", str(tmp_path / "site-packages" / "ripplevec" / "install_hint.py"))

    def install(origin: Any) -> None:
        text = origin if origin is None or isinstance(origin, str) else json.dumps(origin)
        monkeypatch.setattr(metadata, "distribution", lambda _: FakeDistribution(text))

    return install


def test_install_command_for_an_editable_install_runs_in_the_checkout(installed_from: Any) -> None:
    installed_from({"url": "file:///home/me/ripplevec", "dir_info": {"editable": True}})
    assert install_command("serve") == "cd /home/me/ripplevec && pip install -e '.[serve]'"
    assert upgrade_advice() == (
        "update the source in /home/me/ripplevec, then run cd /home/me/ripplevec && pip install -e ."
    )


def test_install_command_for_a_directory_runs_in_it_with_its_path_quoted(installed_from: Any) -> None:
    installed_from({"url": "file:///home/me/my%20code", "dir_info": {}})
    assert install_command("ann") == "cd '/home/me/my code' && pip install '.[ann]'"
    assert upgrade_advice().endswith("then run cd '/home/me/my code' && pip install .")


def test_install_command_for_a_wheel_names_its_path(installed_from: Any, tmp_path: Path) -> None:
    wheel = tmp_path / "ripplevec-1.0-py3-none-any.whl"
    wheel.touch()
    installed_from({"url": wheel.as_uri(), "archive_info": {"hashes": {}}})
    assert install_command("serve") == f"pip install '{wheel}[serve]'"
    assert upgrade_advice() == f"install a newer file than {wheel} with pip install"


def test_install_command_for_a_wheel_that_was_moved_names_the_file(installed_from: Any) -> None:
    installed_from({"url": "file:///gone/ripplevec-1.0-py3-none-any.whl", "archive_info": {}})
    assert install_command("serve") == "pip install 'ripplevec-1.0-py3-none-any.whl[serve]'"


def test_install_command_for_a_url_repeats_it(installed_from: Any) -> None:
    url = "https://example.com/ripplevec-1.0-py3-none-any.whl"
    installed_from({"url": url, "archive_info": {}})
    assert install_command("serve") == f"pip install 'ripplevec[serve] @ {url}'"
    assert upgrade_advice() == f"install a newer file than {url} with pip install"


@pytest.mark.parametrize(
    ("revision", "suffix"), [({"requested_revision": "v1", "commit_id": "abc"}, "@v1"), ({"commit_id": "abc"}, "@abc")]
)
def test_install_command_for_a_repository_names_its_revision(
    installed_from: Any, revision: dict[str, str], suffix: str
) -> None:
    installed_from({"url": "https://example.com/ripplevec.git", "vcs_info": {"vcs": "git", **revision}})
    assert install_command("serve") == f"pip install 'ripplevec[serve] @ git+https://example.com/ripplevec.git{suffix}'"
    assert upgrade_advice() == "pip install -U 'ripplevec @ git+https://example.com/ripplevec.git'"


@pytest.mark.parametrize("origin", [None, "", "not JSON", "[]", "{}", '{"url": 7}'])
def test_install_command_without_a_recorded_origin_names_the_package(installed_from: Any, origin: str | None) -> None:
    installed_from(origin)
    assert install_command("serve") == "pip install 'ripplevec[serve]'"
    assert upgrade_advice() == "pip install -U ripplevec"


def test_install_command_for_a_checkout_that_is_not_installed_runs_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def not_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", not_installed)
    monkeypatch.setattr(install_hint, "__file__", str(tmp_path / "src" / "ripplevec" / "install_hint.py"))
    assert install_command("serve") == "pip install 'ripplevec[serve]'", "no project there"
    (tmp_path / "pyproject.toml").touch()
    assert install_command("serve") == f"cd {tmp_path} && pip install '.[serve]'"
    assert upgrade_advice() == f"update the source in {tmp_path}, then run cd {tmp_path} && pip install ."


def test_missing_extra_error_ends_with_the_install_command(installed_from: Any) -> None:
    installed_from(None)
    error = MissingExtraError("ripplevec serve", "serve")
    assert str(error) == "ripplevec serve needs an optional dependency: pip install 'ripplevec[serve]'"
