# Each target sets up what it needs. `make run` does the main job on real input, `make check` is for every change and
# `make test` passes all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_TO_TEST := $(VENV)/.ready-to-test
EVIDENCE ?= evidence
# A file of tests stays in one process, which keeps what it has set up; tests/conftest.py says which file starts first.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup run check lint test lab grade classroom bench clean packages browser

help:
	@echo "make run    the release lab from data to report, then a sample class graded"
	@echo "make check  linters, types, layer order and the quick tests: about a minute"
	@echo "make test   all of that and every test"
	@echo "make lab    JupyterLab on the student notebooks, in a work folder"
	@echo "make grade  build a sample class and grade it"
	@echo "make classroom  a course in a real JupyterHub and browser (root, Debian)"
	@echo "make bench  the side-by-side measurements of benchmarks/"
	@echo "make clean  remove what the commands made"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  other=$$(for minor in 13 12 11; do it=$$(command -v python3.$$minor) && $$it -c '' 2>/dev/null && echo $$it && break; done); \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo no Python here): expected Python 3.11, 3.12 or 3.13; call make PYTHON=$${other:-/path/to/one}"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[torch,lab,service,grading]'
	@touch $@

$(READY_TO_TEST): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[pt2e,classroom,kubernetes,dev]'
	@touch $@

# The grader's wall is a Debian package: installed where we may, named where we may not.
packages:
	@command -v bwrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap libseccomp2 >/dev/null; }; } \
	  || echo "bubblewrap is not installed: grading falls back to Landlock or refuses; install it with: apt-get install bubblewrap libseccomp2"

run: $(READY) packages
	$(BIN)/dlcases run $(EVIDENCE)
	$(BIN)/python -m grading sample

lint: $(READY_TO_TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(PYTEST) -m "not slow and not classroom"

test: lint packages browser
	@$(BIN)/python -m tests.classroom --prepare-only || [ $$? = 2 ]
	$(PYTEST)

lab: $(READY)
	$(BIN)/dlcases lab

grade: $(READY) packages
	$(BIN)/python -m grading sample

# A browser and the hub's proxy are Debian's; the hub itself gets an environment outside any private home.
browser:
	@{ [ -x /usr/bin/chromium ] && command -v npm >/dev/null && /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; } \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium python3-venv $$(command -v npm >/dev/null || echo npm) >/dev/null; }; } \
	  || echo "no browser or no hub here: pages and classroom stay untested; install with: apt-get install chromium npm python3-venv"

classroom: $(READY_TO_TEST) packages browser
	$(BIN)/python -m tests.classroom --prepare

bench: $(READY) packages
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(EVIDENCE) build dist work benchmarks/results .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
