# `make demo` and `make test` are all that a fresh machine needs: Python 3.11 or newer, and a package index.
PYTHON ?= python3
BIN := .venv/bin
# uv installs in a quarter of pip's time, and reads none of its settings: they are handed on.
UV := $(if $(PIP_FIND_LINKS),UV_FIND_LINKS="$(PIP_FIND_LINKS)") $(if $(PIP_INDEX_URL),UV_DEFAULT_INDEX="$(PIP_INDEX_URL)") \
	$(if $(PIP_CERT),SSL_CERT_FILE="$(PIP_CERT)") $(BIN)/uv pip install --quiet --python $(BIN)/python
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What is imported is compiled once, not again by every process that a test starts.
export PYTHONDONTWRITEBYTECODE :=
# The first import of a package compiles it, 12 s for those of a bi-encoder: the second core takes a part,
# first what torch imports late, so that this is ahead of the demo.
TORCH_PARTS := $(addprefix .venv/lib/python*/site-packages/torch/,nn fx distributed _dynamo)
COMPILE := $(BIN)/python -m compileall -q $(TORCH_PARTS); $(BIN)/python -c 'import sklearn.metrics, sympy'
# The public index has torch with CUDA, 4.5 GB: without a GPU uv takes the CPU build of PyTorch's own index.
TORCH_BACKEND := UV_TORCH_BACKEND=$${UV_TORCH_BACKEND:-auto}
# Asked twice, as if torch were not installed, without uv's pauses: they take 6 s where that index cannot be reached.
ASK_TORCH_INDEX := UV_HTTP_RETRIES=0 $(TORCH_BACKEND) $(UV) --dry-run --reinstall --no-deps "$(shell grep ^torch== requirements.lock)" 2>/dev/null
NO_TORCH_INDEX := PyTorch's own index cannot be reached: torch comes from the package index, with CUDA on Linux
install = if $(BIN)/uv --version >/dev/null 2>&1; then $(UV) $(1); else $(PIP) $(1); fi
install_torch = if ! $(BIN)/uv --version >/dev/null 2>&1; then $(PIP) $(1); \
	elif $(ASK_TORCH_INDEX) || $(ASK_TORCH_INDEX); then $(TORCH_BACKEND) $(UV) $(1); \
	else echo "$(NO_TORCH_INDEX)" >&2; $(UV) $(1); fi

# Tests write and remove 50,000 small files: in memory, where there is some, that is 10 s less of a processor.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'END { if ($$4 > 4000000) print "PYTEST_DEBUG_TEMPROOT=/dev/shm" }')

.PHONY: help setup demo test slow fuzz site lock
help:  ## Say what there is.
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/'

setup: .venv/.test  ## Set everything up in .venv, to work on the project.

demo: .venv/.demo  ## Compare three retrievers on the survey templates that come along.
	$(BIN)/harness demo

test: .venv/.test  ## Lint, types, and the tests that take a moment.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(IN_MEMORY) $(BIN)/pytest -q -n 3 --dist loadfile -m "not slow" && wait $$types

slow: .venv/.test  ## The other tests: calibrations, kills, browsers, commands of the docs.
	$(BIN)/pytest -q -n 2 -m slow

fuzz: .venv/.test  ## The property tests with examples that were never tried.
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q -n 2 --dist loadfile -m "not slow"

site: .venv/.test  ## Build the pages as a site, build/site/index.html.
	$(BIN)/python .ci/site

lock: .venv/.test  ## Pin the newest versions of all packages.
	$(BIN)/python .ci/lock

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	# The interpreter's pip saves the 2 s in which venv unpacks one; where it is missing or too old, venv does.
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check uv pip 2>/dev/null \
	|| { $(PYTHON) -m venv .venv && $(PIP) uv; } || echo "uv is not available: pip does the same, more slowly" >&2
	touch $@

.venv/.demo: .venv/.made requirements.lock pyproject.toml setup.py
	$(call install_torch,-r requirements.lock)
	( $(COMPILE) ) >/dev/null 2>&1 &
	$(call install,--no-deps --no-build-isolation --editable .)
	touch $@

.venv/.test: .venv/.demo requirements-dev.lock
	$(call install_torch,-r requirements-dev.lock)
	touch $@
