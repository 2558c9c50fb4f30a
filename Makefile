# Every target makes the virtual environment itself when it is absent.
# The stamp depends on pyproject.toml: a changed dependency list reinstalls.
VENV    ?= .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
CORE    := $(VENV)/.core
JOBS    ?= 2

.PHONY: help demo test bench lint format wheel-test clean

help:
	@echo "make demo    train on data with known truth, print a table, write a page"
	@echo "make test    the whole test suite"
	@echo "make bench   the speed table"
	@echo "make lint    ruff, mypy, codespell"
	@echo "make format  let ruff mend what it can"
	@echo "make wheel-test   build the wheel, install it alone, try it"
	@echo "make clean   remove what the tools left"

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing clml, every extra and the tools into $(VENV): some minutes ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

# The library and its few core dependencies: all that the demonstration needs.
$(CORE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing clml into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

demo: $(CORE)
	$(BIN)/clml demo

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

bench: $(STAMP)
	$(BIN)/python benchmarks/epoch_time.py
	$(BIN)/python benchmarks/evaluation_time.py

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
	rm -rf build/wheel
	$(BIN)/python -m hatchling build -t wheel -d build/wheel
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel && venv/bin/python ../../.ci/smoke.py

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
