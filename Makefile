# make demo       run the demo and draw a map
# make live       start a service with its live page and a growing graph
# make test       run all checks and tests
# make check      run the checks and the fast tests, in under a minute
# make docs       build the documentation site in build/site
# make client     generate the blocking client from the asyncio client
# make tutorials  run the tutorials and write their pages
# make bench      run the short benchmarks
# make crash      kill processes, simulate power failures, inject I/O errors and failed allocations; extends the records
# make fuzz       damage files of all kinds
# make soak       run one part of the long-term test
# make reproduce  run the experiments of the paper (takes hours)
# make dist       build the packages and check them in empty environments
# make audit      search the dependencies for known vulnerabilities
# make lock       update the hashes in requirements/ for the versions in constraints.txt
# make clean      remove build output and caches
# Every target installs its requirements when it is first used.
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

.PHONY: demo live test check lint docs client tutorials bench crash fuzz soak reproduce dist audit lock clean

demo: $(VENV)/.demo
	$(BIN)/ripplevec demo

live: $(VENV)/.serve
	$(BIN)/python examples/live.py --port $(PORT)

test: lint $(VENV)/.cpu-torch
	$(BIN)/pytest $(PYTEST_FLAGS)

# The tests of single modules that need no other process.
FAST_TESTS := $(addprefix tests/,engine influence integrations release replay rules temporal util views \
	test_batch.py test_changes.py test_doctests.py test_errors.py test_init.py test_install_hint.py \
	test_parameter_docs.py test_parameters.py test_recorded_digests.py)

check: lint
	$(BIN)/pytest $(PYTEST_FLAGS) $(FAST_TESTS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

client: $(VENV)/.test
	$(BIN)/python release/generate_client.py

tutorials: $(VENV)/.tutorials
	$(BIN)/python tutorials/build.py

# Not part of `make bench`: these take long, download other software or need a GPU.
LONG := $(addprefix benchmarks/,crash.py soak.py peers.py baseline_check.py large.py anchor_gpu.py power_cuts.py io_errors.py \
	temporal_links.py file_fuzz.py load_fuzz.py stream_fuzz.py overload.py fault_injection.py start.py \
	attribute_graphsage.py)

bench: $(VENV)/.test
	for file in $(filter-out $(LONG),$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$file || exit 1; done

# Adds this many kills to the record. The run may be interrupted and continued.
KILLS ?= 200
POINTS ?= 4000

crash: $(VENV)/.test
	$(BIN)/python benchmarks/crash.py --kills $(KILLS) --json results/crash.json
	$(BIN)/python benchmarks/power_cuts.py --points $(POINTS) --json results/power_cuts.json
	$(BIN)/python benchmarks/io_errors.py --calls 300 --batches 24 --json results/io_errors.json
	$(BIN)/python benchmarks/fault_injection.py

fuzz: $(VENV)/.test
	$(BIN)/python benchmarks/file_fuzz.py --cases 1500 --seed 7 --json results/file_fuzz.json
	$(BIN)/python benchmarks/load_fuzz.py --cases 2000 --seed 7 --json results/load_fuzz.json

# Each run is one part and continues with the state of the previous part: eight hours are sixteen parts of 30 minutes.
MINUTES ?= 30
SOAK_STATE ?= build/soak
LOAD ?= 0.5

# The service first, then a long run of the stream fuzzer.
soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES) --kills $$(( ($(MINUTES) + 9) / 10 )) --load $(LOAD) \
		--state $(SOAK_STATE) --json results/soak.json --picture results/figures/soak.svg
	$(BIN)/python benchmarks/stream_fuzz.py --minutes $(MINUTES) --seed $$(date +%s) --json results/stream_fuzz.json

reproduce: $(VENV)/.eval
	$(BIN)/ripplevec reproduce

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python release/check_wheel.py dist/*.whl

# Needs access to a public service.
audit: $(VENV)/.audit
	$(BIN)/pip-audit --strict --disable-pip --require-hashes $(foreach file,test dist torch audit,-r requirements/$(file).txt)

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp file per set of extras: packages are installed again only if the requirements have changed. All downloads,
# including the build backend, are checked against the hashes in requirements/.
$(VENV)/.%: requirements/%.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes --no-deps -r $<
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

# The default build of PyTorch includes gigabytes of CUDA. The CPU build is not on the package index, so it is the only
# package whose hash is not checked. If pip does not find it, the tests that need it are skipped.
$(VENV)/.cpu-torch: requirements/torch.txt $(VENV)/.test
	$(BIN)/pip install --quiet --require-hashes --no-deps -r $< && \
		$(BIN)/pip install --quiet --no-deps "$$(sed -n 's/^torch==.*/&+cpu/p' constraints.txt)" || \
		echo "The CPU build of PyTorch could not be installed: the tests that need it will be skipped" >&2
	touch $@

# Hashes of all files of the versions in constraints.txt, for every Python version and platform.
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
