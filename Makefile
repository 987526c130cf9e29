# Everything sets itself up on a machine that has Python 3.11, pip, make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test gate check format docs bench lock clean

help:  ## This list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

# Remade when the project's dependencies change.
$(VENV)/.ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "OnRecord needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.ready  ## A virtual environment with everything, and the model's weights
	@$(BIN)/onrecord --quiet models pull

demo: setup  ## A question that the bundled handbook answers, and one that it doesn't
	@$(BIN)/onrecord demo

test: setup  ## All tests
	$(BIN)/python -m pytest

gate: setup  ## The handbook's questions against the committed baseline
	$(BIN)/onrecord --quiet eval gate --dataset examples/handbook

check: setup  ## Formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup  ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## Run the examples of the documentation and write down what they print
	$(BIN)/python tests/test_docs.py

bench: setup  ## Speed against the bare engines, and answers against the questions
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/datasets.py handbook handbook-test kb_dev

lock:  ## Pin all dependencies anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group dev --extra lab --no-header \
		pyproject.toml -o requirements.lock

clean:  ## Remove what was built
	rm -rf $(VENV) dist results .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
