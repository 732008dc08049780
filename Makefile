# Every target makes its own virtual environment and installs what it needs; the second time that takes a second.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One line for each package as it comes: a first installation takes minutes, and should be seen to move.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
BUILD_INPUTS := pyproject.toml $(wildcard setup.py src/actiongap/learning/native/*.cc src/actiongap/learning/native/*.h)
# The build of PyTorch for CPUs that the tests of its bridge were run with. The package itself never needs it.
TORCH ?= torch==2.13.0

.PHONY: install docs demo test test-all lint format bench fuzz kills dist clean

install: $(VENV)/.installed

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) -e .
	touch $@
	@echo "The command is $(BIN)/actiongap. To have it as actiongap: source $(BIN)/activate"

$(VENV)/.test: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) -e ".[test]"
	touch $(VENV)/.installed $@

$(VENV)/.all: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) $(TORCH)
	$(PIP) -e ".[test,bench,tensorboard,wandb,mlflow,search,atari,box2d,export,ray,browser,docs]" onnxruntime
	touch $(VENV)/.installed $(VENV)/.test $@

$(VENV)/.docs: $(VENV)/.python $(BUILD_INPUTS)
	$(PIP) -e ".[docs]"
	touch $(VENV)/.installed $@

# The documentation as a site, in out/site: a warning, or a link that leads nowhere, ends it with an error.
docs: $(VENV)/.docs
	$(BIN)/python -m tools.docs_site out/site
	@echo "Open out/site/index.html."

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
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

test-all: $(VENV)/.all lint
	$(BIN)/pytest -n auto --dist loadfile

# Damaged files of runs and suites: FUZZ_VARIANTS of them. Killed runs: KILLS of them. See docs/reliability.md.
# Both flush thousands of small files, so they work in memory, where there is such a place.
fuzz kills: export TMPDIR := $(firstword $(TMPDIR) $(wildcard /dev/shm) /tmp)

fuzz: $(VENV)/.test
	FUZZ_VARIANTS=$${FUZZ_VARIANTS:-10000} $(BIN)/pytest tests/fuzz

kills: $(VENV)/.test
	$(BIN)/python tests/kills/harness.py --kills $${KILLS:-1000}

bench: $(VENV)/.all
	for each in benchmarks/*.py; do $(BIN)/python $$each || exit 1; done

dist: $(VENV)/.python
	$(PIP) build
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) build dist out *.egg-info src/*.egg-info
