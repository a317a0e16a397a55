# make demo, make test and make docs do all the set-up themselves; all they need is Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test slow check format bench docs clean

demo: $(VENV)/.installed
	$(BIN)/symsmooth demo -o symsmooth-demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto

slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build/html
	@echo "the pages are in docs/_build/html; open docs/_build/html/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "symsmooth needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf docs/_build docs/gallery docs/api/generated docs/api/backreferences
	rm -rf $(VENV) symsmooth-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
