# Every target works on a fresh clone that has Python 3.11 or newer, pip and make.
# A file named .venv/.installed-* says which extras are installed; it is older than pyproject.toml when they
# must be installed again.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PRESET ?= quickstart
ARGS ?=
# Processes that run the fast tests; each takes one core and up to 2 GiB.
PROCESSES ?= 2

# Tests are many small tensors: a second thread costs more than it brings, and a spinning one slows the rest.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
PEERS := sample_factory rllib aviary nemo_gym openenv verifiers
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip

.DEFAULT_GOAL := help
.PHONY: help train install test test-slow check bench bench-peers docs rooms system clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

train: $(VENV)/.installed-rl ## train the quickstart agent and write its report (PRESET=..., ARGS="--seed 1")
	@$(BIN)/sensorium train $(PRESET) --on-existing resume $(ARGS)

install: $(VENV)/.installed-dev ## install everything for development into .venv
	@echo "Installed in $(VENV)"

test: $(VENV)/.installed-dev system ## run the fast tests (ARGS="-k arena")
	@$(ONE_THREAD) $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile $(ARGS)

test-slow: $(VENV)/.installed-dev system ## run the tests that take minutes
	@$(ONE_THREAD) $(BIN)/python -m pytest -m slow $(ARGS)

check: $(VENV)/.installed-dev ## check style, types, layers, generated text and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/rooms.py --check
	$(MKDOCS) build --strict --quiet

bench: $(VENV)/.installed-bench system ## measure speed and write benchmarks/results/
	@$(BIN)/python benchmarks/throughput.py $(ARGS)

bench-peers: $(PEERS:%=benchmarks/peers/%/.installed) ## install the peers that need environments of their own (8 GB)

docs: $(VENV)/.installed-dev ## build the documentation into site/ (.venv/bin/mkdocs serve shows it while you write)
	@$(MKDOCS) build --strict --quiet
	@echo "site/index.html"

rooms: $(VENV)/.installed-dev ## write the generated parts of README.md and CONTRIBUTING.md
	$(BIN)/python scripts/rooms.py

system: | $(BIN)/python
	@scripts/install_system.sh $(BIN)/python

clean: ## remove .venv, the peers' environments, caches and built files; runs/ stays
	rm -rf $(VENV) $(PEERS:%=benchmarks/peers/%) site build dist src/*.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks scripts docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@scripts/create_venv.sh $(VENV) $(PYTHON)

$(VENV)/.installed-rl: pyproject.toml | $(BIN)/python
	@echo "Installing sensorium[rl] into $(VENV): PyTorch and the environments; this takes a few minutes the first time"
	@$(PIP) install --quiet --editable '.[rl]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "Installing sensorium[dev] into $(VENV): everything, with the tools; this takes a few minutes the first time"
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $(VENV)/.installed-rl $@

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	@echo "Installing sensorium[all,bench] into $(VENV): everything, with the peers to compare with; this takes a few minutes the first time"
	@$(PIP) install --quiet --editable '.[all,bench]'
	@touch $(VENV)/.installed-rl $@

benchmarks/peers/%/.installed: benchmarks/peers/%.txt
	@rm -rf $(@D)
	@scripts/create_venv.sh $(@D) $(PYTHON)
	@echo "Installing $< into $(@D): this takes a few minutes"
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(@D)/bin/python -m pip install --quiet --requirement $<
	@if [ -f $(@D).without_dependencies.txt ]; then \
		PIP_DISABLE_PIP_VERSION_CHECK=1 $(@D)/bin/python -m pip install --quiet --no-deps --ignore-requires-python \
			--requirement $(@D).without_dependencies.txt; \
	fi
	@touch $@
