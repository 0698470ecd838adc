# Everything bootstraps itself: a machine with Python 3.11+, make and git is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := $(VENV)/.demo
# Half of what tests do is waiting for processes, so twice as many run as there are cores; numpy must not want more.
TESTS := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 4

.PHONY: demo test test-all bench lint format clean

demo: $(DEMO)
	@$(BIN)/python examples/demo.py

test: lint
	@$(TESTS) -m "not slow"

test-all: lint
	@PEGBOARD_TESTS=all $(TESTS)

bench: $(STAMP)
	@$(BIN)/python -m bench

lint: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache | tail -n 3

format: $(STAMP)
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

clean:
	rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .hypothesis

# The demo needs a few small packages; the tests need every framework that there is a plug-in for.
$(DEMO): WANTED := demo
$(STAMP): WANTED := dev
$(DEMO) $(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pegboard needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(WANTED)]'
	@touch $@
