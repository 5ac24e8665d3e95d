# Every target sets up what it needs. Python 3.11 or newer and make are all it assumes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two locks, one environment: what the demo needs, and everything. Whoever has everything has the demo too.
RUN    := $(VENV)/.ready-run
READY  := $(VENV)/.ready
# Where the environment sets it, each of the thousands of programs of the tests compiles anew what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system programs demo test check static format bench soak build docs generate lock clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## everything for work on Neorion, into .venv, pinned by hash

$(RUN): requirements.txt pyproject.toml
	@$(PYTHON) tools/setup.py $(VENV) requirements.txt
	@touch $@

$(READY): constraints.txt pyproject.toml
	@$(PYTHON) tools/setup.py $(VENV) constraints.txt
	@touch $(RUN) $@

system: ## system packages for the tests: installed as root on Debian, otherwise named
	@$(PYTHON) tools/system.py

programs: $(READY) ## the programs of real clusters, built once; without them `make test` leaves tests out
	@$(BIN)/neorion drydock build

demo: $(RUN) ## a job on simulated GPU machines, one of which loses power
	@$(BIN)/neorion demo

test: $(READY) system ## every test this machine can run, then the checks; builds no programs
	@$(BIN)/python -m tools.run_tests $(ARGS)

check: static ## ruff, basedpyright, import contracts, tidy, generated code
	$(BIN)/pytest -q tests/test_tidy.py tests/test_surface.py

static: $(READY) ## the checks that are no tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check

format: $(READY) ## let ruff write the form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY) system ## measurements, each beside its reference in the same run
	@$(BIN)/python -m bench $(ARGS)

soak: $(READY) system ## the slow tests, all seeds, and new examples for every law
	@NEORION_EXPLORE=1 $(BIN)/pytest -n auto --dist loadfile --durations=40 -m "slow or hypothesis" --timeout 3600 $(ARGS)
	$(BIN)/pytest -n auto -q --durations=10 -m "not slow" --timeout 3600 tests/sim tests/keel

build: $(RUN) ## the wheel and the source distribution in dist/
	@rm -rf dist
	@PATH="$(BIN):$$PATH" uv build --quiet && ls dist/*

docs: $(READY) ## the documentation site in site/, with links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet $(ARGS) && echo "docs: site/index.html"

generate: $(READY) ## code from .proto files, pages from code
	@$(BIN)/python -m tools.generate

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-emit-index-url --custom-compile-command "make lock"

# The base images have a pip.
IMAGE = --constraint constraints.txt --no-emit-package pip

lock: $(READY) ## resolve the locks again from pyproject.toml
	@$(COMPILE) --all-extras --group dev pyproject.toml -o constraints.txt
	@$(COMPILE) --constraint constraints.txt --extra server pyproject.toml -o requirements.txt
	@$(COMPILE) $(IMAGE) --extra server --extra kube --extra devservers --extra ssh --extra aws pyproject.toml \
	  -o infra/docker/devservers-operator/requirements.txt
	@$(COMPILE) $(IMAGE) --extra server --extra navarch --extra kube --extra ssh --extra postgres --extra aws \
	  --extra gcp pyproject.toml -o infra/docker/navarch-control-plane/requirements.txt
	@$(COMPILE) $(IMAGE) --extra server --extra kube --extra objects --extra postgres pyproject.toml \
	  -o infra/docker/iris-controller/requirements.txt

clean: ## remove what make made
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
