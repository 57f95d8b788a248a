"""Pages are built from scripts cell by cell, and the committed pages match the scripts."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib import pyplot

SCRIPT = '''"""Not on the page."""

# %% [markdown]
# # Sums
#
# One and one.

# %%
import matplotlib.pyplot as plt

total = 1 + 1
print(total)

# %% drawing
plt.figure()
plt.title("A line")
plt.plot([0, total])
'''
ANIMATION = """
from matplotlib.animation import FuncAnimation

animation = FuncAnimation(plt.gcf(), lambda frame: None, 2)
"""
PAGE = """# Sums

One and one.

```python
import matplotlib.pyplot as plt

total = 1 + 1
print(total)
```

```text
2
```

![A line](images/sums-1.png)

<details markdown="1">
<summary>Code of the figure</summary>

```python
plt.figure()
plt.title("A line")
plt.plot([0, total])
```

</details>

<!-- Made by `make tutorials` from tutorials/sums.py. -->
"""
OUTPUT_OR_PICTURE = re.compile(r"^```text\n.*?^```$|^!\[[^\n]*\)$", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def scripts(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "SCRIPTS", tmp_path)
    return tmp_path


def test_run_script_gives_page_with_output_and_figures(build: ModuleType, scripts: Path) -> None:
    (scripts / "sums.py").write_text(SCRIPT)
    cells, names = build.run("sums", scripts / "images")
    assert build.render_page("sums", cells) == PAGE
    assert names["total"] == 2
    assert (scripts / "images/sums-1.png").read_bytes().startswith(b"\x89PNG")


def test_run_picture_too_large_raises(build: ModuleType, scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (scripts / "sums.py").write_text(SCRIPT)
    monkeypatch.setattr(build, "MAX_PICTURE_BYTES", 100)
    with pytest.raises(ValueError, match=r"sums-1.png: expected at most 100 bytes"):
        build.run("sums", scripts / "images")


def test_run_figures_of_others_do_not_change_the_numbers(build: ModuleType, scripts: Path) -> None:
    pyplot.figure()
    (scripts / "sums.py").write_text(SCRIPT)
    cells, _ = build.run("sums", scripts / "images")
    assert cells[-1].pictures == {"sums-1.png": "A line"}


def test_run_animation_is_written_instead_of_its_figure(build: ModuleType, scripts: Path) -> None:
    (scripts / "sums.py").write_text(SCRIPT + ANIMATION)
    cells, _ = build.run("sums", scripts / "images")
    assert cells[-1].pictures == {"sums-1.gif": "A line"}
    assert (scripts / "images/sums-1.gif").read_bytes().startswith(b"GIF")


def test_notebook_has_cells_with_their_output(build: ModuleType, scripts: Path) -> None:
    (scripts / "sums.py").write_text(SCRIPT)
    cells, _ = build.run("sums", scripts / "images")
    notebook = json.loads(build.render_notebook(cells, scripts / "images"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    text, code, drawing = notebook["cells"]
    assert text["source"] == ["# Sums\n", "\n", "One and one."]
    assert code["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["2\n"]}]
    picture = base64.b64decode(drawing["outputs"][0]["data"]["image/png"])
    assert picture == (scripts / "images/sums-1.png").read_bytes()


def test_similar_outputs_have_equal_words_and_close_numbers(have_similar_outputs: Callable[[str, str], bool]) -> None:
    assert have_similar_outputs("right: 71.6% of 1,354", "right: 72.0%  of 1,354")
    assert not have_similar_outputs("right: 71.6%", "wrong: 71.6%")
    assert not have_similar_outputs("right: 71.6%", "right: 76.0%")


def test_pages_match_their_scripts(build: ModuleType) -> None:
    assert {path.stem for path in build.SCRIPTS.glob("*.py")} == {"build", *build.NAMES}
    for name in build.NAMES:
        expected = build.render_page(name, build.parse_cells((build.SCRIPTS / f"{name}.py").read_text()))
        committed = OUTPUT_OR_PICTURE.sub("", (build.PAGES / f"{name}.md").read_text())
        assert committed.split() == expected.split(), f"run `python tutorials/build.py {name}`"


def test_index_matches_the_pages(build: ModuleType) -> None:
    committed = {name: (build.PAGES / f"{name}.md").read_text() for name in build.NAMES}
    assert (build.PAGES / "index.md").read_text() == build.render_index(committed)


def test_committed_pictures_are_those_of_the_pages(build: ModuleType) -> None:
    shown = {file for page in build.PAGES.glob("*.md") for file in re.findall(r"\(images/(.*?)\)", page.read_text())}
    committed = {path.name: path.stat().st_size for path in (build.PAGES / "images").iterdir()}
    assert set(committed) == shown
    for name, size in committed.items():
        assert size <= (build.MAX_ANIMATION_BYTES if name.endswith(".gif") else build.MAX_PICTURE_BYTES)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_page_has_the_result_of_its_tutorial(build: ModuleType, page: str) -> None:
    text = " ".join((build.SCRIPTS.parent / page).read_text().split())
    assert build.find_result((build.PAGES / "wikipedia.md").read_text()) in text
