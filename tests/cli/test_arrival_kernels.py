from __future__ import annotations

import subprocess
import sys

from ripplevec import Embedder
from ripplevec.cli.arrival_kernels import compile_arrival_kernels
from ripplevec.rules._arrival_kernel import apply_arrival, make_arrival_context
from ripplevec.rules._kernels import apply_batch


def test_arrival_kernels_are_those_of_a_model_with_default_parameters():
    model = Embedder().fit([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
    model.add_vertex(5, [0, 1])
    model.partial_fit([(6, 1), (6, 2)])
    kernels = (apply_arrival, make_arrival_context, apply_batch)
    compiled = [list(kernel.signatures) for kernel in kernels]
    compile_arrival_kernels()
    assert [list(kernel.signatures) for kernel in kernels] == compiled


def test_arrival_kernels_process_succeeds_while_its_parent_lives():
    with subprocess.Popen([sys.executable, "-m", "ripplevec.cli.arrival_kernels"], stdin=subprocess.PIPE) as process:
        assert process.wait() == 0


def test_arrival_kernels_process_ends_with_its_parent():
    code = "import ripplevec.cli.arrival_kernels as k; k._end_with_parent()"
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
