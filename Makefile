# Every target makes the virtual environment itself when it is absent.
# The stamp depends on pyproject.toml: a changed dependency list reinstalls.
VENV    ?= .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
JOBS    ?= 2

.PHONY: help demo test bench lint format wheel-test clean

help:
	@echo "make demo    train on embedded data and print a table"
	@echo "make test    the whole test suite"
	@echo "make bench   the speed table"
	@echo "make lint    ruff, mypy, codespell"

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

demo: $(STAMP)
	$(BIN)/clml demo

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

bench: $(STAMP)
	$(BIN)/python benchmarks/epoch_time.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The wheel, installed with the core dependencies alone, in an environment of its own.
wheel-test: $(STAMP)
	$(BIN)/python benchmarks/wheel_smoke.py

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
