from __future__ import annotations

from ripplevec.lab.experiments.plots.style import BLACK, COLORS, MARKERS, looks_of, plain_look


def test_a_family_has_one_color_and_ours_is_black() -> None:
    looks = looks_of(["NetMF", "ripplevec", "NetMF, tuned", "ripplevec, one view", "LINE"])
    assert looks["NetMF"].color == looks["NetMF, tuned"].color != looks["LINE"].color
    assert (looks["NetMF"].dashes, looks["NetMF, tuned"].dashes) == ("-", "--")
    assert [name for name, look in looks.items() if look.ours] == ["ripplevec", "ripplevec, one view"]
    assert {look.color for look in looks.values() if look.ours} == {BLACK}
    assert (looks["ripplevec"].dashes, looks["ripplevec, one view"].dashes) == ("-", ":")


def test_no_two_of_many_lines_look_the_same() -> None:
    many = len(COLORS) * len(MARKERS)
    assert len({(look["color"], look["marker"]) for look in map(plain_look, range(many))}) == many
