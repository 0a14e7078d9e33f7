# `make demo` and `make test` are all that a fresh machine needs: Python 3.11 or newer, and a package index.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test
demo: .venv/.ready
	$(BIN)/harness run experiments/quickstart.toml

test: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 -m "not slow"

.venv/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
