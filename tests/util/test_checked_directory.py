"""Checked directories: round trips, detection of damage, atomic replacement, and foreign files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from ripplevec._version import __version__
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.util.checked_directory import (
    FORMAT_VERSION,
    MANIFEST,
    atomic_write,
    read_arrays,
    read_meta,
    write_arrays,
)

OLD = {"rows": np.arange(6, dtype=np.float32).reshape(2, 3), "flags": np.array([True, False])}
NEW = {"rows": np.ones((3, 3), np.float32)}
META = {"seed": 7, "rate": 1e-05, "name": "café", "views": [{"share": 0.5}, None]}

dtypes = st.one_of(
    arrays_of.integer_dtypes(endianness="?"),
    arrays_of.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    arrays_of.boolean_dtypes(),
    arrays_of.unicode_string_dtypes(max_len=4),
    arrays_of.datetime64_dtypes(),
)
any_array = dtypes.flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def assert_contains(directory: Path, arrays: dict[str, NDArray[Any]], meta: Any = META) -> None:
    read, read_meta = read_arrays(directory)
    assert read_meta == meta
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes()


def is_only_entry(directory: Path) -> bool:
    return os.listdir(directory.parent) == [directory.name]


@settings(deadline=None, max_examples=40)
@given(arrays=st.dictionaries(names, any_array, max_size=3), meta=st.dictionaries(st.text(), json_values, max_size=3))
def test_read_arrays_returns_written_content(arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        write_arrays(Path(place) / "model", arrays, meta)
        assert_contains(Path(place) / "model", arrays, meta)
        assert is_only_entry(Path(place) / "model")


def test_read_arrays_other_memory_layouts_have_equal_values(tmp_path: Path) -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    write_arrays(tmp_path / "model", {"turned": matrix.T, "some": matrix[:, ::2]}, {})
    read, _ = read_arrays(tmp_path / "model")
    assert np.array_equal(read["turned"], matrix.T)
    assert np.array_equal(read["some"], matrix[:, ::2])


def test_read_arrays_meta_has_json_types(tmp_path: Path) -> None:
    write_arrays(tmp_path / "model", {}, {"pair": (1, 2), "table": {10: "a", 9: "b"}})
    assert_contains(tmp_path / "model", {}, {"pair": [1, 2], "table": {"10": "a", "9": "b"}})


def test_manifest_describes_the_directory(tmp_path: Path) -> None:
    write_arrays(tmp_path / "model", OLD, META, kind="snapshot")
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text())
    assert {key: manifest[key] for key in ("format", "kind", "version", "ripplevec", "meta")} == {
        "format": "ripplevec",
        "kind": "snapshot",
        "version": FORMAT_VERSION,
        "ripplevec": __version__,
        "meta": META,
    }
    rows = manifest["arrays"]["rows"]
    size = (tmp_path / "model" / "rows.npy").stat().st_size
    assert (rows["file"], rows["dtype"], rows["shape"], rows["bytes"]) == ("rows.npy", "<f4", [2, 3], size)
    read_arrays(tmp_path / "model", kind="snapshot")
    with pytest.raises(FormatError, match="expected a saved embedder, got a saved snapshot"):
        read_arrays(tmp_path / "model")


@pytest.fixture(scope="module")
def intact_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("intact_directory") / "model"
    write_arrays(directory, OLD, META)
    return directory


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_read_arrays_any_changed_byte_raises(intact_directory: Path, data: st.DataObject) -> None:
    path = intact_directory / data.draw(st.sampled_from(sorted(os.listdir(intact_directory))))
    before = path.read_bytes()
    place, flip = data.draw(st.integers(0, len(before) - 1)), data.draw(st.integers(1, 255))
    try:
        path.write_bytes(before[:place] + bytes([before[place] ^ flip]) + before[place + 1 :])
        with pytest.raises(FormatError):
            read_arrays(intact_directory)
    finally:
        path.write_bytes(before)
    assert_contains(intact_directory, OLD)


def replace_by_file(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("")


def truncate(directory: Path) -> None:
    with open(directory / "rows.npy", "r+b") as file:
        file.truncate(100)


def flip_last_bit(directory: Path) -> None:
    content = bytearray((directory / "rows.npy").read_bytes())
    content[-1] ^= 1
    (directory / "rows.npy").write_bytes(content)


def edit_manifest(**changes: Any) -> Callable[[Path], None]:
    """Change the manifest entry of `rows` and update the checksum of the manifest."""

    def edit(directory: Path) -> None:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        del manifest["checksum"]
        manifest["arrays"]["rows"] |= changes
        text = json.dumps(manifest, separators=(",", ":")).encode()
        manifest["checksum"] = hashlib.blake2b(text, digest_size=32).hexdigest()
        (directory / MANIFEST).write_text(json.dumps(manifest, indent=1))

    return edit


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "expected a directory written by Ripplevec, got nothing. Check the path"),
        (replace_by_file, "expected a directory written by Ripplevec, got a file"),
        (lambda d: (d / MANIFEST).unlink(), "expected a directory with a manifest.json, got none"),
        (lambda d: (d / MANIFEST).write_text("{"), "expected JSON, .*damaged. Restore"),
        (lambda d: (d / MANIFEST).write_text("[1]"), "expected the manifest of a ripplevec directory"),
        (lambda d: (d / MANIFEST).write_text('{"format": "ripplevec"}'), "expected text that matches its checksum"),
        (
            lambda d: write_arrays(d, OLD, META, version=FORMAT_VERSION + 1),
            rf"newer Ripplevec: expected format {FORMAT_VERSION} or older, got {FORMAT_VERSION + 1}. To upgrade",
        ),
        (lambda d: (d / "rows.npy").unlink(), "rows.npy: expected the array that the manifest lists, got no such file"),
        (truncate, "rows.npy: expected 152 bytes, got 100. Restore"),
        (flip_last_bit, "rows.npy: expected checksum [0-9a-f]{64}, got [0-9a-f]{64}. The file is damaged. Restore"),
        (edit_manifest(shape=[3, 2]), r"expected dtype <f4 and shape \(3, 2\), got dtype <f4 and shape \(2, 3\)"),
        (edit_manifest(dtype="<f8"), r"expected dtype <f8 and shape \(2, 3\), got dtype <f4 and shape \(2, 3\)"),
        (edit_manifest(file="../rows.npy"), "expected plain file names, got '../rows.npy'"),
    ],
)
def test_read_arrays_damaged_directory_names_the_fault(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    write_arrays(tmp_path / "model", OLD, META)
    damage(tmp_path / "model")
    with pytest.raises(FormatError, match=message):
        read_arrays(tmp_path / "model")


def test_write_arrays_existing_directory_is_replaced(tmp_path: Path) -> None:
    write_arrays(tmp_path / "model", OLD, META)
    write_arrays(tmp_path / "model", NEW, META)
    assert_contains(tmp_path / "model", NEW)
    assert not (tmp_path / "model" / "flags.npy").exists()
    assert is_only_entry(tmp_path / "model")


def test_write_arrays_empty_or_missing_directory_is_created(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("empty", "not/yet/there"):
        write_arrays(tmp_path / place, OLD, META)
        assert_contains(tmp_path / place, OLD)


def test_write_arrays_symlink_replaces_its_target(tmp_path: Path) -> None:
    write_arrays(tmp_path / "real", OLD, META)
    (tmp_path / "link").symlink_to("real")
    write_arrays(tmp_path / "link", NEW, META)
    assert (tmp_path / "link").is_symlink()
    assert_contains(tmp_path / "real", NEW)


@pytest.mark.parametrize("written_before", [False, True])
def test_write_arrays_foreign_files_raises_and_changes_nothing(tmp_path: Path, written_before: bool) -> None:
    directory = tmp_path / "thesis"
    directory.mkdir()
    if written_before:
        write_arrays(directory, OLD, META)
    (directory / "chapter.txt").write_text("years of work")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(FormatError, match=r"contains 'chapter\.txt'. Choose another path"):
        write_arrays(directory, NEW, META)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert is_only_entry(directory)


def test_write_arrays_existing_file_raises_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(FormatError, match=r"got a file\. Choose another path"):
        write_arrays(tmp_path / "notes", NEW, META)
    assert (tmp_path / "notes").read_text() == "mine"


class CrashError(Exception):
    """Simulated crash of the machine."""


def crash(*_: object, **__: object) -> None:
    raise CrashError


def crash_from(step: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that works for `step` calls and then crashes."""
    calls = iter(range(step))

    def limited(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if next(calls, None) is not None else crash()

    return limited


@pytest.mark.parametrize("cleaning", [True, False])
@pytest.mark.parametrize(("function", "steps"), [("replace", 2), ("fsync", 4)])
def test_write_arrays_crash_leaves_a_complete_directory(
    tmp_path: Path, function: str, steps: int, cleaning: bool
) -> None:
    for step in range(steps):
        directory = tmp_path / f"{step}" / "model"
        write_arrays(directory, OLD, META)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, crash_from(step, getattr(os, function)))
            if not cleaning:
                patch.setattr(shutil, "rmtree", crash)
            with pytest.raises(CrashError):
                write_arrays(directory, NEW, META)
            in_place = function == "fsync" and step == 3  # only the parent directory was not synced
            assert_contains(directory, NEW if in_place else OLD)
        write_arrays(directory, NEW, META)
        assert_contains(directory, NEW)
        assert is_only_entry(directory)


def test_write_arrays_failed_rename_restores_the_old_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrays(tmp_path / "model", OLD, META)
    real = os.replace

    def fail_on_new(source: Path, target: Path) -> None:
        if source.name.endswith("ripplevec-new"):
            raise PermissionError(13, "in use", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", fail_on_new)
    with pytest.raises(PermissionError):
        write_arrays(tmp_path / "model", NEW, META)
    assert is_only_entry(tmp_path / "model")
    assert_contains(tmp_path / "model", OLD)


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "a b", "a\n", "ä", "x" * 101])
def test_write_arrays_unsafe_name_raises(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValueError, match="array name: expected"):
        write_arrays(tmp_path / "model", {name: np.zeros(1)}, {})
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("array", [np.array([None]), np.zeros(1, [("a", "O")])])
def test_write_arrays_object_dtype_raises(tmp_path: Path, array: NDArray[Any]) -> None:
    with pytest.raises(InvalidValueError, match="array 'bad': expected"):
        write_arrays(tmp_path / "model", {"bad": array}, {})
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, np.float32(1)])
def test_write_arrays_meta_not_json_raises(tmp_path: Path, value: object) -> None:
    with pytest.raises(InvalidValueError, match="meta: expected values that JSON can hold"):
        write_arrays(tmp_path / "model", {}, {"bad": value})
    assert not os.listdir(tmp_path)


def test_read_meta_without_arrays_succeeds(tmp_path: Path) -> None:
    write_arrays(tmp_path / "saved", {"a": np.arange(9)}, {"name": "x"}, kind="thing")
    (tmp_path / "saved" / "a.npy").unlink()
    found = read_meta(tmp_path / "saved", kind="thing")
    assert found["name"] == "x"
    assert found["bytes"] > 72
    with pytest.raises(FormatError, match="expected a saved other"):
        read_meta(tmp_path / "saved", kind="other")


def test_atomic_write_after_error_keeps_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with suppress(KeyboardInterrupt), atomic_write(path) as part:
        part.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_atomic_write_gives_default_permissions(tmp_path):
    (tmp_path / "default").write_text("")
    with atomic_write(tmp_path / "x") as part:
        part.write_text("new")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "default").stat().st_mode
