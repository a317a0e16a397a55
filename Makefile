# make demo, make test and make docs do all the set-up themselves; all they need is Python 3.11 or newer and a C++
# compiler (which is installed if that is allowed).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

NATIVE := CMakeLists.txt $(wildcard src/symsmooth/native/*)
# nanobind also writes _native.pyi, each version in its own way: whoever installs may have any since 2.4.
TOOLS := 'scikit-build-core>=0.10' 'nanobind==3.1.*' 'setuptools>=77' 'setuptools-scm>=8.1' 'cmake>=3.21' 'ninja>=1.11'
INSTALL := $(BIN)/python -m pip install --quiet --no-build-isolation --editable
REPRO := packages/symsmooth-repro
NAPARI := packages/napari-symsmooth
PROJECTS := pyproject.toml $(REPRO)/pyproject.toml $(NAPARI)/pyproject.toml

.PHONY: demo test napari-test deepinv-test slow check check-release stub format reproduce bench bench-compare evidence docs dist sanitize arm64 clean

demo: $(VENV)/.installed
	$(BIN)/symsmooth demo -o symsmooth-demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

# The napari plug-in has an environment of its own: napari and Qt are one gigabyte.  They draw with OpenGL, so
# without a display it takes Xvfb (apt-get install xvfb xauth libgl1 libegl1 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1).
SCREEN := $(shell command -v xvfb-run >/dev/null && echo xvfb-run -a)
napari-test:
	$(MAKE) VENV=.venv-napari .venv-napari/.installed-napari
	$(SCREEN) .venv-napari/bin/python -m pytest tests/napari -W ignore::DeprecationWarning -W ignore::FutureWarning \
	  --cov --cov-config=tests/napari/coverage.ini --cov-report=term
	.venv-napari/bin/npe2 validate napari-symsmooth

# The adapter of docs/howto/inverse_problems.md in deepinv, which brings PyTorch with CUDA: 6 GB.
deepinv-test:
	$(MAKE) VENV=.venv-deepinv .venv-deepinv/.installed
	.venv-deepinv/bin/python -m pip install --quiet 'deepinv>=0.5,<1' 'scikit-image>=0.24,<1' 'pytest>=8,<10' 'hypothesis>=6.100,<7'
	.venv-deepinv/bin/python -m pytest -p no:cacheprovider tests/test_deepinv.py

slow: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet ziglang # which compiles for macOS and Windows
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	sh tools/check_native.sh $(abspath $(BIN))/python
	$(MAKE) --no-print-directory check-release

# Workflows, citation and what else a release is made of; needs no network.
check-release: $(VENV)/.installed-release
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet --no-progress .github
	$(BIN)/sp-repo-review --show err .
	$(BIN)/hadolint Dockerfile
	$(BIN)/python benchmarks/pages.py --check
	@if command -v actionlint >/dev/null; then actionlint; else echo "actionlint is not installed: workflows were checked against their schema and by zizmor"; fi

# What is uploaded: of each package the sdist and the wheel that is built from it, checked and tried in fresh
# environments.
dist: $(VENV)/.installed-release
	rm -rf dist
	for package in . $(REPRO) $(NAPARI); do $(BIN)/python -m build --outdir dist $$package || exit 1; done
	$(BIN)/python -m twine check --strict dist/*
	sh tools/try_dist.sh $(PYTHON)

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i src/symsmooth/native/*.?pp

# _native.pyi, what Python knows of the compiled core.
stub: $(VENV)/.installed-test
	sh tools/check_native.sh $(abspath $(BIN))/python --write

# The paper's tables and figures, measured again: hours, or minutes with QUICK=--quick; it goes on where it was
# stopped.  The paper's pictures are in SYMSMOOTH_IMAGES, or others stand in.
reproduce: $(VENV)/.installed-repro
	$(BIN)/symsmooth reproduce $(if $(SYMSMOOTH_IMAGES),--images $(SYMSMOOTH_IMAGES)) --out reproduction $(QUICK)

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/rician.py --quiet
	$(BIN)/python benchmarks/large.py

# Times of today beside the last that were kept (pytest-benchmark); a third slower fails.  KEEP=name keeps them.
bench-compare: $(VENV)/.installed-bench
	$(BIN)/python -m pytest benchmarks/test_speed.py -c benchmarks/pytest.ini $(if $(KEEP),--benchmark-save=$(KEEP),\
	  --benchmark-compare --benchmark-compare-fail=min:33%)

# All that the pages print, measured and kept (benchmarks/stored), and the pages made again.  Half an hour on two
# quiet cores; QUIET= leaves the times out where others are at work.
QUIET := --quiet
evidence: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/keep.py $(QUIET)

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build/html
	@echo "the pages are in docs/_build/html; open docs/_build/html/index.html"

# Kernels and contracts under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/.installed-test
	sh tools/sanitize.sh $(abspath $(BIN))/python

# Kernels on 64-bit ARM, under qemu.
arm64: $(VENV)/.installed-test
	sh tools/arm64.sh $(abspath $(BIN))/python

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "symsmooth needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# What is built from, and a compiler.  Without isolation builds go on from what is built already.
$(VENV)/.tools: tools/ensure_compiler.sh | $(VENV)/bin/python
	@sh tools/ensure_compiler.sh
	$(BIN)/python -m pip install --quiet $(TOOLS)
	@touch $@

$(VENV)/.installed: pyproject.toml $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) .
	@touch $@

# The plug-in without what it needs: what of it can be tested without Qt is.
$(VENV)/.installed-test: $(PROJECTS) $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) '.[test]' --editable $(REPRO)
	$(INSTALL) $(NAPARI) --no-deps
	@touch $@ $(VENV)/.installed $(VENV)/.installed-repro

$(VENV)/.installed-napari: $(PROJECTS) $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) . --editable '$(NAPARI)[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-repro: $(PROJECTS) $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) . --editable $(REPRO)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(PROJECTS) $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) . --editable '$(REPRO)[bench]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-repro

$(VENV)/.installed-release: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --group release
	@touch $@

$(VENV)/.installed-docs: $(PROJECTS) $(NATIVE) | $(VENV)/.tools
	PATH=$(abspath $(BIN)):$$PATH $(INSTALL) '.[docs]' --editable $(REPRO)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-repro

clean:
	rm -rf docs/_build docs/gallery docs/api/generated docs/api/backreferences
	rm -rf build dist packages/*/build packages/*/src/*.egg-info $(VENV) .venv-napari .venv-deepinv symsmooth-demo .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
