# Every target sets up what it needs; `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.SUFFIXES:

PYTHON ?= python3
UV ?= uv
PYTEST_ARGS ?=
BENCH_ARGS ?=
BIN := .venv/bin
STAMP = .venv/.installed-$(shell cat requirements/dev.txt pyproject.toml | sha256sum | cut -c1-16)
JARS := .venv/.jars-$(shell sha256sum < src/karat/lake/jars.txt | cut -c1-16)
say = @printf '\033[1m%s\033[0m\n' "$(1)"

.PHONY: help setup check test lint types unit frames laws flows demo bench docs pins clean

help: ## list these targets
	@printf 'Karat: make <target>   (PYTEST_ARGS="-k name" passes through to pytest)\n\n'
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  \033[1m%-8s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(JARS) ## make .venv with the pinned packages and fetch Delta's jars, once
	$(call say,ready: $(BIN)/karat)

test: lint types $(JARS) ## everything that must be green: lint, types and all four tiers of tests
	$(call say,tests: flows laws frames unit · two processes, the long ones first)
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder tests/flows tests/laws tests/frames tests/unit $(PYTEST_ARGS)

check: lint types unit ## what a change should pass before anything else: lint, types and the tests without Spark

lint: $(STAMP) ## ruff (rules and format) and the arrows between the folders
	$(call say,lint: ruff check · ruff format · lint-imports)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo

types: $(STAMP) ## mypy, strict
	$(call say,types: mypy)
	@$(BIN)/mypy

unit: $(STAMP) ## tests without Spark, in seconds
	@$(BIN)/pytest -n 2 tests/unit $(PYTEST_ARGS)

frames: $(JARS) ## tests of transforms on a local Spark
	@$(BIN)/pytest tests/frames $(PYTEST_ARGS)

laws: $(JARS) ## tests of laws over random histories
	@$(BIN)/pytest tests/laws $(PYTEST_ARGS)

flows: $(JARS) ## tests of whole runs: Delta, state store, command line
	@$(BIN)/pytest tests/flows $(PYTEST_ARGS)

demo: $(JARS) ## play three days of the bank example: evidence, timelines, beliefs, proof
	@$(BIN)/python examples/bank/demo.py

bench: $(JARS) ## measure every case beside the same work by hand and print one table (BENCH_ARGS="--scale 0.1" passes through)
	@$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

docs: $(JARS) ## run every snippet of the documentation
	$(call say,docs: every >>> in README.md and docs/ is run)
	@$(BIN)/pytest --doctest-glob='*.md' README.md docs $(PYTEST_ARGS) || test $$? -eq 5  # 5: no snippets yet

pins: ## compile the hashed requirement files again (needs uv)
	@command -v $(UV) >/dev/null || { echo "make pins needs uv: pip install uv, or name it: make pins UV=path"; exit 1; }
	$(call say,pins: requirements/run.txt · requirements/dev.txt)
	@$(UV) pip compile --quiet --generate-hashes --no-header --no-annotate \
	  --extra postgresql --extra mariadb pyproject.toml -o requirements/run.txt
	@$(UV) pip compile --quiet --generate-hashes --no-header --no-annotate \
	  --extra postgresql --extra mariadb --group dev pyproject.toml -o requirements/dev.txt

clean: ## remove what was built here: .venv, caches, build products (not the jar cache)
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Karat needs Python 3.11 or later as '$(PYTHON)'; name another one: make PYTHON=python3.12"; exit 1; }
	$(call say,setup: .venv with the pinned packages (a minute or two the first time))
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -f .venv/.installed-*
	@touch $@

$(JARS): $(STAMP)
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { \
	  echo "Karat needs Java 17 or later: install a runtime (for example openjdk-17-jre-headless) or point JAVA_HOME at one"; exit 1; }
	$(call say,setup: Delta's jars)
	@$(BIN)/karat setup
	@rm -f .venv/.jars-*
	@touch $@
