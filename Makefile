# On first use, a target creates a virtual environment in .venv, with the versions of constraints.txt.
# OPTIONS are added to a command: make reproduce OPTIONS="--trials 300"; TESTS are some tests.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet \
	--disable-pip-version-check

PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal

# The versions of constraints.txt, with the hashes of all their files.
HASHES := $(BIN)/uv pip compile --quiet --python-platform linux --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --constraint constraints.txt

# Extras that .venv/installed-NAME installs.
EXTRAS-service := service
EXTRAS-dev := dev,test,docs,bench,cluster,examples,excel,gym,models,parquet,postgresql,service
EXTRAS-docs := cluster,docs,excel,gym,models,service,testing
EXTRAS-release := release
EXTRAS-bench := bench,postgresql,service

.PHONY: reproduce table1 serve test slow check soak matrix bench docs notebooks requirements dist clean
.DELETE_ON_ERROR:

reproduce: .venv/installed  ## the two figures of the paper, and a check of its claims
	$(BIN)/multiplay reproduce --out results $(OPTIONS)

table1: .venv/installed  ## Table 1 of the paper, with measured regret, time and memory
	$(BIN)/multiplay table1 --out results/table1 $(OPTIONS)

serve: .venv/installed-service  ## a service with a year of example data; open the printed address
	mkdir -p results
	$(BIN)/multiplay serve --demonstration --store sqlite:///results/demonstration.db $(OPTIONS)

test: .venv/installed-dev  ## style, types, unit tests, contracts, one test of each integration
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; \
	$(PYTEST) -m "not slow and not soak" $(TESTS); tests=$$?; \
	wait $$types && exit $$tests

slow: .venv/installed-dev  ## what `make test` leaves out: statistics, kills, browsers, pages, doctests
	$(PYTEST) -m "slow and not soak" --hypothesis-profile=check --durations=30
	$(PYTEST) --doctest-modules src

check: test slow  ## all tests, except those marked soak

soak: .venv/installed-dev  ## the longest tests, marked soak, and the limits of beliefs
	$(BIN)/pytest -m soak --hypothesis-profile=soak
	$(BIN)/python -m benchmarks.bills --jobs 2
	$(BIN)/python -m benchmarks.change --jobs 2
	$(BIN)/python -m benchmarks.features --jobs 2
	$(BIN)/python -m benchmarks.savings --jobs 2
	$(BIN)/python -m benchmarks.allowance --jobs 2
	$(BIN)/python -m benchmarks.promises --jobs 2

matrix: .venv/installed-release  ## the tests on every installed Python, and with the lowest versions
	$(BIN)/python tools/matrix.py $(TESTS)

bench: .venv/installed-bench  ## speed and memory, compared with other software
	$(BIN)/python -m benchmarks --out results/bench $(OPTIONS)

docs: .venv/installed-docs  ## the documentation site, in docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

notebooks: .venv/installed-docs  ## the tutorials as notebooks, in notebooks/
	$(BIN)/python docs/_ext/notebooks.py notebooks
	@echo "Open them in Jupyter: notebooks/*.ipynb"

requirements: .venv/installed-release  ## packages of the container with their hashes, in deploy/
	$(HASHES) --extra service --extra postgresql --output-file deploy/requirements.txt pyproject.toml
	sed -n 's/^requires = \["\(.*\)"\]$$/\1/p' pyproject.toml | \
		$(HASHES) --output-file deploy/build-requirements.txt -

dist: .venv/installed-release  ## wheel and source distribution in dist/, checked in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/try_dist.py dist

clean:  ## remove compiled kernels and caches, not the virtual environment
	find src tests tools benchmarks examples -name __pycache__ -prune -exec rm -r {} +
	rm -rf dist docs/_build docs/reference/names .matrix .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	touch $@

.venv/installed-%: .venv/installed Makefile
	$(INSTALL) --editable '.[$(EXTRAS-$*)]'
	touch $@
