from __future__ import annotations

import json

import pytest

from ripplevec.cli.bench_record import FIGURES, ratios, read, write
from ripplevec.errors import FormatError

FIGURES_OF_A_RUN = {name: float(place) for place, name in enumerate(FIGURES, 1)}


def test_a_ratio_above_one_is_better_whatever_the_figure():
    here = {name: 3 * value if FIGURES[name].more_is_better else value / 3 for name, value in FIGURES_OF_A_RUN.items()}
    assert ratios(here, {"figures": FIGURES_OF_A_RUN}) == pytest.approx(dict.fromkeys(FIGURES, 3.0))


def test_nothing_to_compare_with_is_no_ratio():
    assert ratios(FIGURES_OF_A_RUN, {}) == {}


def test_one_size_is_written_and_the_other_stays(tmp_path):
    path = tmp_path / "record.json"
    write(path, "full", FIGURES_OF_A_RUN)
    write(path, "quick", {name: 2 * value for name, value in FIGURES_OF_A_RUN.items()})
    assert read(path, "full")["figures"] == FIGURES_OF_A_RUN
    assert read(path, "quick")["figures"]["bytes_per_edge"] == 2 * FIGURES_OF_A_RUN["bytes_per_edge"]
    assert read(path, "quick")["environment"]["machine"]


@pytest.mark.parametrize(
    "content", ["no json", "[]", '{"full": 1}', json.dumps({"full": {"figures": FIGURES_OF_A_RUN}})]
)
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=r"record\.json: expected a record"):
        read(path, "full")


def test_a_figure_of_nothing_is_refused(tmp_path):
    path = tmp_path / "record.json"
    write(path, "full", {**FIGURES_OF_A_RUN, "nearest_ms": 0.0})
    with pytest.raises(FormatError, match="above 0"):
        read(path, "full")
