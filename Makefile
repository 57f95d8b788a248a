# make demo: see it work. make live: see it move, in a browser. make test: everything that must hold.
# make docs: the documents as a site, in build/site. make reproduce: the paper's experiments, for hours.
# make dist: what a package index gets, used in empty environments.
# make tutorials: their pages, run again. Each sets up what it needs, once.
PYTHON ?= python3
PYTEST_FLAGS ?= -n auto --dist loadfile

VENV := .venv
BIN := $(VENV)/bin

ifndef RIPPLET_DATA
ifneq ($(wildcard ../shared/data),)
export RIPPLET_DATA := $(abspath ../shared/data)
endif
endif

PORT ?= 8080

.PHONY: demo live test lint docs tutorials bench crash soak reproduce dist clean

demo: $(VENV)/.demo
	$(BIN)/ripplet demo

live: $(VENV)/.serve
	$(BIN)/python examples/live.py --port $(PORT)

test: lint $(VENV)/.cpu-torch
	$(BIN)/pytest $(PYTEST_FLAGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

tutorials: $(VENV)/.tutorials
	$(BIN)/python tutorials/build.py

# Those that take long, fetch other software or want a GPU are run by themselves.
LONG := $(addprefix benchmarks/,crash.py soak.py peers.py independent.py large.py anchor_gpu.py)

bench: $(VENV)/.test
	for file in $(filter-out $(LONG),$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$file || exit 1; done

# Adds so many kills to the record, which may be interrupted and continued.
KILLS ?= 200

crash: $(VENV)/.test
	$(BIN)/python benchmarks/crash.py --kills $(KILLS) --json results/crash.json

soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py --json results/soak.json --picture results/figures/soak.svg

reproduce: $(VENV)/.eval
	$(BIN)/ripplet reproduce

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python release/check_wheel.py dist/*.whl

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of extras: installed again only when what is to be installed has changed.
$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet -c constraints.txt -e '.[$*]'
	touch $@

# PyTorch brings gigabytes of CUDA, but for its build for CPUs. Where pip finds none, the tests that want it are skipped.
$(VENV)/.cpu-torch: $(VENV)/.test
	$(BIN)/pip install --quiet -c constraints.txt "$$(sed -n 's/^torch==.*/&+cpu/p' constraints.txt)" torch_geometric || \
		echo "PyTorch for CPUs could not be installed: the tests that want it will be skipped" >&2
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
