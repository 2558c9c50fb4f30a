# Every target makes the virtual environment itself when it is absent.
# The stamp depends on pyproject.toml: a changed dependency list reinstalls.
VENV    ?= .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
CORE    := $(VENV)/.core
JOBS    ?= 2
OLDEST  := .venv-oldest
# Left out are what takes long and is no matter of versions, what is about PyTorch, of
# which the oldest is not installed, and tests that themselves need newer packages.
OLDEST_TESTS ?= tests src/clml \
  $(addprefix --ignore=tests/, report/test_browser.py test_documentation.py \
    test_numbers.py persistence/test_damaged_files.py engine/test_torch.py \
    evolution/test_inverse_sqrt.py evolution/test_rank_one.py \
    baselines/test_c2ae.py baselines/test_clif.py baselines/test_dela.py \
    reliability/test_fuzz.py reliability/test_memory_growth.py) \
  $(addprefix --deselect=tests/, \
    baselines/test_deep.py::test_callbacks \
    datasets/test_frames.py::test_times_of_frames_and_of_python \
    datasets/test_parquet.py::test_types[-halffloat-] \
    $(foreach n,1 2 3,$(foreach b,True False,\
      network/test_forward.py::test_equals_the_plain_twin[coo_array-$(b)-$(n)])) \
    test_checkpoints.py::test_a_process_that_is_killed_again_and_again)

.PHONY: help demo test test-oldest bench lint format wheel-test clean

help:
	@echo "make demo    train on data with known truth, print a table, write a page"
	@echo "make test    the whole test suite"
	@echo "make test-oldest  the suite with the oldest packages that are allowed"
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

# The oldest releases that pyproject.toml allows, in an environment of their own. Kernels
# are compiled anew by the oldest numba: it does not notice a change in what they call.
$(OLDEST)/.installed: pyproject.toml .ci/oldest.py
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python .ci/oldest.py > $(OLDEST)/constraints.txt
	@echo "Installing the oldest allowed packages into $(OLDEST): some minutes ..."
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[dev]" --constraint $(OLDEST)/constraints.txt || { \
	  echo "The packages of $(OLDEST)/constraints.txt could not be installed. If the" \
	    "network is there, a lower bound in pyproject.toml names a release that" \
	    "cannot be had or does not go with the others: raise it." >&2; exit 1; }
	touch $@

test-oldest: $(OLDEST)/.installed
	rm -rf $(OLDEST)/kernels
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/kernels $(OLDEST)/bin/python -m pytest -n $(JOBS) \
	  --dist worksteal -p no:cacheprovider $(OLDEST_TESTS)

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
	find src tests -name '*.nb[ci]' -delete  # kernels
