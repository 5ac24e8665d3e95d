# Every target sets up what it needs. Python 3.11 or newer and make are all it assumes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help setup system programs demo test check static format bench soak docs generate lock clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## the environment in .venv, every version pinned by hash

$(READY): constraints.txt pyproject.toml
	@$(PYTHON) tools/setup.py $(VENV)
	@touch $@

system: ## system packages for the tests: installed as root on Debian, otherwise named
	@$(PYTHON) tools/system.py

programs: $(READY) ## the programs of real clusters, built once; tests that need them are skipped without
	-@$(BIN)/neorion drydock build --quiet >/dev/null

demo: $(READY) ## the embedded stack, one job, one fault, healed
	@$(BIN)/neorion demo

test: $(READY) system programs ## every test this machine can run, then the checks
	@$(BIN)/pytest -n auto -m "not slow" $(ARGS)
	@$(MAKE) --no-print-directory static

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

soak: $(READY) system ## the slow tests, and new examples for every law
	@NEORION_EXPLORE=1 $(BIN)/pytest -n auto -m "slow or hypothesis" --timeout 3600 $(ARGS)

docs: $(READY) ## the documentation site in site/, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "docs: site/index.html"

generate: $(READY) ## code from .proto files, pages from code
	@$(BIN)/python -m tools.generate

lock: $(READY) ## resolve constraints.txt anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev --generate-hashes \
	  --no-annotate --custom-compile-command "make lock" pyproject.toml -o constraints.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra server --extra kube --extra devservers --extra ssh \
	  --generate-hashes --no-annotate --custom-compile-command "make lock" --constraint constraints.txt pyproject.toml \
	  -o infra/docker/devservers-operator/requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra server --extra navarch --extra kube \
	  --extra ssh --extra postgres --extra aws --extra gcp --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --constraint constraints.txt pyproject.toml \
	  -o infra/docker/navarch-control-plane/requirements.txt

clean: ## remove what make made
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
