from __future__ import annotations

import pytest

from ripplevec.io.readers.option_syntax import as_arguments, as_flags, in_address


@pytest.mark.parametrize(
    ("syntax", "expected"),
    [
        (as_arguments, ['src="a", dst="2"', "header=True", "header=False"]),
        (as_flags, ["--src a --dst 2", "--header", "--no-header"]),
        (in_address, ["?src=a&dst=2 in the address", "?header=yes in the address", "?header=no in the address"]),
    ],
)
def test_option_syntax_writes_names_and_switches(syntax, expected):
    assert [syntax(src="a", dst="2"), syntax(header=True), syntax(header=False)] == expected
