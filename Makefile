# make demo    from nothing to a translation: environment, training of the toy language, a few sentences
# make test    the tests; installs what it lacks
# make attack-kills    all of an attack, of which make test makes a few tries: tests/attacks/test_kills.py; see
#              docs/reliability.md for the others and what they gave
# make check   linters, types, import contract, the documentation without a warning
# make docs    the documentation as a site: docs/_build/html/index.html
# make tour    pages of `tfm explain` in docs/tour: three toy models, trained if runs/ has them not, and one sentence
# make site    the tour, then the documentation with it: what is published
# make bench   tfm beside its peers, in an environment of their own (benchmarks/README.md)
#
# On Linux, torch from PyPI brings several GB of CUDA libraries. For the CPU build:
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
TORCH_INDEX ?=
DEMO_RUN ?= runs/toy
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
BENCH ?=
SOURCES := $(shell find cli configs data engine seq2seq system -name '*.py' -o -name '*.yaml' -o -name 'page.*' -o -name py.typed) pyproject.toml
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo tour site test test-slow check docs format bench build clean

# The package is installed as a user would have it, not in place: tests then see what the wheel holds.
$(VENV)/installed: $(VENV)/runtime $(SOURCES)
	@rm -rf build tfm.egg-info
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	@rm -rf build tfm.egg-info
	@touch $@

$(VENV)/runtime: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tfm needs Python 3.11 or newer; try make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing tfm and what it needs into $(VENV) (once; a few minutes)"
	@$(if $(TORCH_INDEX),$(BIN)/pip install --quiet -c constraints.txt --index-url $(TORCH_INDEX) torch)
	@$(BIN)/pip install --quiet -c constraints.txt torch setuptools
	@$(BIN)/pip install --quiet -c constraints.txt .
	@touch $@

$(VENV)/development: $(VENV)/installed
	@test -e $@ -a $@ -nt $(VENV)/runtime || $(BIN)/pip install --quiet -c constraints.txt \
		basedpyright build ctranslate2 furo hypothesis import-linter lxml myst-parser playwright pytest pytest-timeout \
		pytest-xdist python-calamine python-multipart ruff sacremoses sphinx sphinx-copybutton starlette tensorboard uvicorn
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/tfm train --run $(DEMO_RUN)
	@$(BIN)/tfm evaluate --run $(DEMO_RUN) --data toy --metric exact --examples 5
	$(BIN)/tfm translate --run $(DEMO_RUN) "the old woman gives the child two red apples"
	@echo "to use tfm in this terminal: . $(BIN)/activate"

# Many checkpoints are kept: the pages show attention as it takes form.
TOUR_TRAIN := $(BIN)/tfm train --set training.checkpoint_every=100 --set training.keep_checkpoints=20
TOUR_TEXT ?= no happy neighbors took care of the uncle at the quiet river yesterday

tour: $(VENV)/installed
	@$(TOUR_TRAIN) --run runs/tour-toy
	@$(TOUR_TRAIN) --run runs/tour-toy-decoder --config toy-decoder
	@$(TOUR_TRAIN) --run runs/tour-toy-encoder --config toy-encoder
	@mkdir -p docs/tour
	@$(BIN)/tfm explain --run runs/tour-toy --checkpoints "$(TOUR_TEXT)" --output docs/tour/tour-encoder-decoder.html
	@$(BIN)/tfm explain --run runs/tour-toy-decoder --checkpoints "$(TOUR_TEXT)" --output docs/tour/tour-decoder-only.html
	@$(BIN)/tfm explain --run runs/tour-toy-encoder "$(TOUR_TEXT)" --output docs/tour/tour-encoder-only.html

test: $(VENV)/development
	@$(BIN)/python -m pytest --quiet --numprocesses 2 --dist loadfile

# Where the peers' environment is, their tests are to see this tfm.
test-slow: $(VENV)/development $(wildcard $(BENCH_VENV)/installed)
	@$(BIN)/python -m pytest -m slow --timeout 7200 -rs

attack-%: $(VENV)/development
	@$(BIN)/python -m pytest tests/attacks/test_$*.py --at-scale --numprocesses 2 --timeout 2400 -rs -m "slow or not slow"

check: $(VENV)/development docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

docs: $(VENV)/development
	@rm -rf docs/_build
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html

site: tour docs

format: $(VENV)/development
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

$(BENCH_VENV)/installed: $(BENCH_VENV)/runtime $(SOURCES)
	@$(BENCH_VENV)/bin/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	@rm -rf build tfm.egg-info
	@touch $@

$(BENCH_VENV)/runtime: benchmarks/requirements.txt constraints.txt pyproject.toml
	@test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	@echo "installing tfm and its peers into $(BENCH_VENV) (once; a few minutes)"
	@$(if $(TORCH_INDEX),$(BENCH_VENV)/bin/pip install --quiet -c constraints.txt --index-url $(TORCH_INDEX) torch)
	@$(BENCH_VENV)/bin/pip install --quiet -c constraints.txt setuptools -r benchmarks/requirements.txt
	@$(BENCH_VENV)/bin/pip install --quiet -c constraints.txt .
	@touch $@

bench: $(BENCH_VENV)/installed
	@$(BENCH_VENV)/bin/python benchmarks/report.py $(BENCH)

build: $(VENV)/development
	@$(BIN)/python -m build --no-isolation

clean:
	@rm -rf build dist tfm.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache docs/_build
