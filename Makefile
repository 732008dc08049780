# Every target makes its own virtual environment and installs what it needs; the second time that takes a second.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BUILD_INPUTS := pyproject.toml $(wildcard setup.py src/actiongap/learning/native/*.cc src/actiongap/learning/native/*.h)
# The build of PyTorch for CPUs that the tests of its bridge were run with. The package itself never needs it.
TORCH ?= torch==2.13.0

.PHONY: install demo test test-all lint format bench clean

install: $(VENV)/.installed

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) -e .
	touch $@

$(VENV)/.test: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) -e ".[test]"
	touch $(VENV)/.installed $@

$(VENV)/.all: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) $(TORCH)
	$(PIP) -e ".[test,bench,tensorboard,atari,box2d,ray,browser]"
	touch $(VENV)/.installed $(VENV)/.test $@

demo: install
	$(BIN)/actiongap chainwalk --out out/demo/chainwalk
	$(BIN)/actiongap compare pixelcopter --algos dqn al clip_al --seeds 3 --steps 150_000 --out out/demo/pixelcopter
	@echo "Open out/demo/pixelcopter/report/index.html (the report) and out/demo/chainwalk/index.html (the chain walk)."

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/pytest -n auto -m "not slow"

test-all: $(VENV)/.all lint
	$(BIN)/pytest -n auto

bench: $(VENV)/.all
	for each in benchmarks/*.py; do $(BIN)/python $$each || exit 1; done

clean:
	rm -rf $(VENV) build out *.egg-info src/*.egg-info
