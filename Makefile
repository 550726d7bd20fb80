# ilaverify: `make help` lists the targets.

PYTHON ?= python3
WORKERS ?= auto

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

# A PYTHON given by the user is taken as it is; otherwise versioned names are tried after python3.
PYTHONS := $(PYTHON) $(if $(filter file,$(origin PYTHON)),python3.13 python3.12 python3.11)
NEW_ENOUGH := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: help prove resnet20 test test-slow lint format types docs serve-docs table2 bench clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

prove: $(VENV)/installed ## prove the FlexASR MaxPool mapping for every size; certificate in proofs/
	$(BIN)/ilaverify mapping flexasr_maxpool --method chc -o proofs

# What could not be proved is left out of the compiled model, which says so: no reason to stop.
resnet20: $(VENV)/installed-compare ## compile ResNet-20 by proved rules, run it on the simulators, compare with onnxruntime
	mkdir -p build
	$(BIN)/python -m examples.models resnet20 -o build/resnet20.onnx
	-$(BIN)/ilaverify prove --target flexasr,hlscnn --timeout 900 -o proofs
	$(BIN)/ilaverify compile build/resnet20.onnx --target flexasr,hlscnn --proofs proofs -o build/resnet20
	$(BIN)/ilaverify run build/resnet20 --random 1 --reference onnxruntime

test: $(VENV)/installed-dev ## run the tests and doctests that take seconds
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-slow: $(VENV)/installed-dev ## run the tests marked slow
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

lint: $(VENV)/installed-dev ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/installed-dev ## rewrite the files in the project's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/installed-dev ## check the types
	$(BIN)/mypy

docs: $(VENV)/installed-docs ## build the documents as a site in build/site; a broken link is an error
	$(BIN)/mkdocs build --strict

serve-docs: $(VENV)/installed-docs ## show the site at http://127.0.0.1:8000 while it is written
	$(BIN)/mkdocs serve

table2: $(VENV)/installed-dev ## compare eight operators on the accelerators with real numbers (table 2)
	$(BIN)/python -m benchmarks.table2

bench: $(VENV)/installed-dev ## run the benchmarks
	$(BIN)/python -m benchmarks

clean: ## remove everything that make, the tools and the tests have made (proofs are kept)
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that still works is brought up to date; otherwise it is made anew.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null && exit; \
	for python in $(PYTHONS); do \
	  if "$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then \
	    echo "Making $(VENV) with $$("$$python" --version)"; \
	    exec "$$python" -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "error: ilaverify needs Python 3.11 or newer with its venv module; tried: $(strip $(PYTHONS))" >&2; \
	echo "       name one with: make PYTHON=/path/to/python3" >&2; \
	exit 1
	@echo "Installing ilaverify into $(VENV)"
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --no-build-isolation --only-binary llvmlite --editable '.[native]' 2>/dev/null || \
	  $(PIP_INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-compare: $(VENV)/installed
	@echo "Installing ONNX and onnxruntime"
	@$(PIP_INSTALL) --no-build-isolation --editable '.[compare]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	@echo "Installing the site generator"
	@$(PIP_INSTALL) --no-build-isolation --editable '.[docs]'
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "Installing the tools for tests and checks"
	@$(PIP_INSTALL) --no-build-isolation --editable '.[test,dev,plot,compare]'
	@touch $@
