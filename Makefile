# Everything is set up on first use: a virtual environment in the checkout, with pinned versions.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet \
	--disable-pip-version-check

PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal

# What .venv/installed-NAME installs besides.
EXTRAS-service := service
EXTRAS-dev := dev,test,docs,bench,cluster,examples,parquet,postgresql,service
EXTRAS-docs := cluster,docs,service,testing
EXTRAS-release := release
EXTRAS-bench := bench,postgresql,service

.PHONY: reproduce table1 serve test check soak matrix bench docs notebooks dist clean
.DELETE_ON_ERROR:

reproduce: .venv/installed  ## the two figures of the paper, and which of its claims hold
	$(BIN)/multiplay reproduce --out results

table1: .venv/installed  ## Table 1 of the paper, with regret, time and memory beside its formulas
	$(BIN)/multiplay table1 --out results/table1

serve: .venv/installed-service  ## a service with a year of made-up trucks: open the address it prints
	mkdir -p results
	$(BIN)/multiplay serve --demonstration --store sqlite:///results/demonstration.db

test: .venv/installed-dev  ## in five minutes: style, types, unit tests, contracts, a test of each integration
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; \
	$(PYTEST) -m "not slow and not soak"; tests=$$?; \
	wait $$types && exit $$tests

check: .venv/installed-dev  ## all tests: more examples of each property, statistics, kills, browsers, pages, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not soak" --hypothesis-profile=check --durations=30
	$(PYTEST) --doctest-modules src

soak: .venv/installed-dev  ## what takes longer
	$(BIN)/pytest -m soak --hypothesis-profile=soak

matrix: .venv/installed-release  ## the tests on every Python of this machine, and with the lowest versions
	$(BIN)/python tools/matrix.py $(TESTS)

bench: .venv/installed-bench  ## speed and memory, side by side with other software
	$(BIN)/python -m benchmarks --out results/bench

docs: .venv/installed-docs  ## the site, in docs/_build/html: every page, every public name
	$(BIN)/sphinx-build --fail-on-warning --keep-going --jobs auto --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

notebooks: .venv/installed-docs  ## the tutorials as notebooks, in notebooks/
	$(BIN)/python docs/_ext/notebooks.py notebooks
	@echo "Open them in Jupyter: notebooks/*.ipynb"

dist: .venv/installed-release  ## wheel and sources in dist/, tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/try_dist.py dist

clean:  ## compiled kernels and caches; the virtual environment stays
	find src tests tools benchmarks examples -name __pycache__ -prune -exec rm -r {} +
	rm -rf dist docs/_build docs/reference/names .matrix .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	touch $@

.venv/installed-%: .venv/installed
	$(INSTALL) --editable '.[$(EXTRAS-$*)]'
	touch $@
