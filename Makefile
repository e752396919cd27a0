# moses_rnn: `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
# Extra words for pip, e.g. PIP_FLAGS="--index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple"
PIP_FLAGS ?=
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt --editable '.[dev]'
	touch $@

.PHONY: setup
setup: $(INSTALLED) ## create .venv with what was tested (constraints.txt)

.PHONY: lint
lint: $(INSTALLED) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: test
test: lint ## set-up, lint, types and every test that needs no Moses, GPU or hours
	$(BIN)/pytest -m 'not moses and not gpu and not slow'
