# make demo: see it work. make live: see it move, in a browser. make test: everything that must hold.
# make docs: the documents as a site, in build/site. make reproduce: the paper's experiments, for hours.
# make dist: what a package index gets, used in empty environments. make audit: known vulnerabilities of what it needs.
# make lock: the hashes in requirements/, for the versions in constraints.txt.
# make tutorials: their pages, run again. Each sets up what it needs, once.
PYTHON ?= python3
PYTEST_FLAGS ?= -n auto --dist loadfile

VENV := .venv
BIN := $(VENV)/bin

ifndef RIPPLEVEC_DATA
ifneq ($(wildcard ../shared/data),)
export RIPPLEVEC_DATA := $(abspath ../shared/data)
endif
endif

PORT ?= 8080

.PHONY: demo live test lint docs tutorials bench crash fuzz soak reproduce dist audit lock clean

demo: $(VENV)/.demo
	$(BIN)/ripplevec demo

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
LONG := $(addprefix benchmarks/,crash.py soak.py peers.py independent.py large.py anchor_gpu.py power_cuts.py io_errors.py \
	file_fuzz.py load_fuzz.py stream_fuzz.py overload.py)

bench: $(VENV)/.test
	for file in $(filter-out $(LONG),$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$file || exit 1; done

# Adds so many kills to the record, which may be interrupted and continued.
KILLS ?= 200
POINTS ?= 4000

crash: $(VENV)/.test
	$(BIN)/python benchmarks/crash.py --kills $(KILLS) --json results/crash.json
	$(BIN)/python benchmarks/power_cuts.py --points $(POINTS) --json results/power_cuts.json
	$(BIN)/python benchmarks/io_errors.py --calls 300 --batches 24 --json results/io_errors.json

# Damaged files of every kind.
fuzz: $(VENV)/.test
	$(BIN)/python benchmarks/file_fuzz.py --cases 1500 --seed 7 --json results/file_fuzz.json
	$(BIN)/python benchmarks/load_fuzz.py --cases 2000 --seed 7 --json results/load_fuzz.json

# One part of a soak, which goes on with the state of the part before it: eight hours are sixteen parts of thirty minutes.
MINUTES ?= 30
SOAK_STATE ?= build/soak

# (A longer run of the fuzzer of random streams belongs here, before the service.)
soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES) --kills $$(( ($(MINUTES) + 2) / 3 )) --state $(SOAK_STATE) \
		--json results/soak.json --picture results/figures/soak.svg
	$(BIN)/python benchmarks/stream_fuzz.py --minutes $(MINUTES) --seed $$(date +%s) --json results/stream_fuzz.json

reproduce: $(VENV)/.eval
	$(BIN)/ripplevec reproduce

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python release/check_wheel.py dist/*.whl

# Known vulnerabilities of everything that is installed; asks a public service.
audit: $(VENV)/.audit
	$(BIN)/pip-audit --strict --disable-pip --require-hashes $(foreach file,test dist torch audit,-r requirements/$(file).txt)

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of extras: installed again only when what is to be installed has changed. Everything that comes from
# elsewhere is checked against the hashes in requirements/, the build backend included.
$(VENV)/.%: requirements/%.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes --no-deps -r $<
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

# PyTorch brings gigabytes of CUDA, but for its build for CPUs, which the package index does not have: it alone is not
# checked. Where pip finds none, the tests that want it are skipped.
$(VENV)/.cpu-torch: requirements/torch.txt $(VENV)/.test
	$(BIN)/pip install --quiet --require-hashes --no-deps -r $< && \
		$(BIN)/pip install --quiet --no-deps "$$(sed -n 's/^torch==.*/&+cpu/p' constraints.txt)" || \
		echo "PyTorch for CPUs could not be installed: the tests that want it will be skipped" >&2
	touch $@

# The hashes of all files of the versions in constraints.txt, for every Python and platform.
UV ?= uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-header --no-annotate \
	--constraint constraints.txt
EXTRAS := demo serve test docs tutorials eval dist

lock:
	for extra in $(EXTRAS); do \
		$(LOCK) pyproject.toml requirements/build.in --extra $$extra -o requirements/$$extra.txt || exit 1; \
	done
	$(LOCK) requirements/torch.in -o requirements/torch.txt
	$(LOCK) requirements/build.in requirements/audit.in -o requirements/audit.txt

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
