# Every target sets up what it needs, from nothing but Python 3.11+ and the package registries.
# uv is used where it is present, plain venv and pip where it is not.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
UV     := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long check format bench lock clean

help: ## show these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## the environment with all extras, in .venv

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Tocsin needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; a few minutes on a slow connection)"
ifdef UV
	@uv venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	@uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

run: $(READY) ## the main job, on embedded defaults
	@$(BIN)/tocsin demo

test: $(READY) ## the whole test suite
	@$(BIN)/python -m pytest

test-long: $(READY) ## the suite with many more random workloads
	@TOCSIN_TEST_PROFILE=long $(BIN)/python -m pytest

check: $(READY) ## lint, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(READY) ## apply the formatter and the safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## run every benchmark in small; recorded results are in benchmarks/
	@$(BIN)/python -m benchmarks all

lock: ## resolve requirements.lock anew (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --custom-compile-command "make lock" --quiet -o requirements.lock

clean: ## remove the environment and every cache
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
