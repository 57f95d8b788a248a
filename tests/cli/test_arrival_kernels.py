from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ripplevec import Embedder
from ripplevec.cli.arrival_kernels import compile_arrival_kernels, compile_correction_kernels
from ripplevec.rules import _correction_kernels, _kernels, _ritz_kernels, _rotation_kernels
from ripplevec.rules._arrival_kernel import apply_arrival, make_arrival_context
from ripplevec.rules._kernels import apply_batch
from ripplevec.util.numba_intrinsics import Kernel


def test_arrival_kernels_are_those_of_a_model_with_default_parameters():
    model = Embedder().fit([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
    model.add_vertex(5, [0, 1])
    model.partial_fit([(6, 1), (6, 2)])
    kernels = (apply_arrival, make_arrival_context, apply_batch)
    compiled = [list(kernel.signatures) for kernel in kernels]
    compile_arrival_kernels()
    assert [list(kernel.signatures) for kernel in kernels] == compiled


def test_first_anchor_of_a_stream_compiles_nothing_else() -> None:
    code = "from test_arrival_kernels import compare_correction_kernels; compare_correction_kernels()"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


def compare_correction_kernels() -> None:
    """Compare compiled kernels before and after a stream, in a process that has not compiled anything else."""
    compile_correction_kernels()
    compiled = list_correction_kernels()
    assert {"filter_rows", "add_projections", "write_new_rows", "find_moved", "refresh"} <= set(compiled)
    model = Embedder(dim=4).fit([(u, (u + step) % 40) for u in range(40) for step in (1, 2)])
    while not model.engine.anchors or model.engine.correction is not None:
        model.add_vertex(len(model), [len(model) - 1, len(model) - 2])
    assert list_correction_kernels() == compiled


def list_correction_kernels() -> dict[str, str]:
    """Return for which types the kernels of corrections are compiled, by name."""
    modules = (_correction_kernels, _ritz_kernels, _rotation_kernels)
    kernels = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Kernel)}
    return {name: str(kernel.signatures) for name, kernel in kernels.items() if kernel.signatures} | {
        "refresh": str(_kernels.refresh.signatures)
    }


def test_arrival_kernels_process_succeeds_while_its_parent_lives():
    with subprocess.Popen([sys.executable, "-m", "ripplevec.cli.arrival_kernels"], stdin=subprocess.PIPE) as process:
        assert process.wait() == 0


def test_arrival_kernels_process_ends_with_its_parent():
    code = "import ripplevec.cli.arrival_kernels as k; k._end_with_parent()"
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
