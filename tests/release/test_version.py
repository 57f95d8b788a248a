"""The version is defined in one file, and every other mention agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from ripplevec import __version__
from ripplevec.service.app import create_app
from ripplevec.service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
AUTHORS = ["Liu", "Hsieh", "Duffield", "Chen", "Xie", "Wen"]


def test_package_version_comes_from_the_version_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert f'__version__ = "{__version__}"' in (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text()


def test_citation_has_this_version_and_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    (paper,) = citation["references"]
    assert paper["title"] in (ROOT / "README.md").read_text()
    assert [author["family-names"] for author in paper["authors"]] == AUTHORS


def test_service_reports_this_version(tmp_path):
    description = create_app(Settings(tmp_path)).openapi()
    assert description["info"]["version"] == __version__


def test_changelog_starts_with_this_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings == ["Unreleased", *released]
    if "dev" not in __version__:
        assert released[0] == __version__
    else:
        assert __version__ not in released


def test_documentation_names_no_other_version():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, version)
        for page in pages
        for version in re.findall(r"ripplevec(?:==| |-)v?(\d+\.\d+[\w.]*\w)", page.read_text())
    }
    assert {(page, version) for page, version in named if version != __version__} == set()
