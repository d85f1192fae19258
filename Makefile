# Every target makes its own virtual environment first; see `make help`.

# The first of these that is Python 3.11 or newer; `make PYTHON=... setup` names another.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && exit; done; echo python3)
endif
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
READY := $(VENV)/.ready
PLUGIN := docs/examples/plugin
PIP := $(PY) -m pip --disable-pip-version-check --quiet
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-example control-plane test-control-plane check fix cov bench readme lock build clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Create .venv with exactly what the lock file names

$(READY): requirements-dev.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		found=$$("$(PYTHON)" --version 2>&1) || found=missing; \
		echo "extender needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; }
	@"$(PY)" -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install the package python3-venv." >&2; exit 1; }
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## Explain, simulate and serve the bundled example cluster
	PATH="$(CURDIR)/$(BIN):$$PATH" sh docs/examples/demo/run.sh

test: test-example ## Run all tests; those against a control plane only if it was built
	$(PY) -m pytest $(PYTEST_FLAGS)

# The example plugin is installed beside the environment, not into it: the other tests must not find it.
test-example: $(READY) ## Install the example plugin as a package of its own and run its tests
ifneq ($(wildcard $(PLUGIN)/pyproject.toml),)
	rm -rf build/example
	$(PIP) install --no-deps --no-build-isolation --no-index --target build/example ./$(PLUGIN)
	PYTHONPATH="$(CURDIR)/build/example" $(PY) -m pytest $(PLUGIN)
endif

control-plane: $(READY) ## Build etcd and the programs of Kubernetes, for tests, into a cache outside the tree
	$(PY) -m tests.controlplane.build

test-control-plane: control-plane ## Run the tests against a real control plane
	CONTROL_PLANE=required $(PY) -m pytest tests/controlplane $(PYTEST_FLAGS)

check: $(READY) ## Lint, formatting, types, direction of imports, house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) -m pytest --quiet tests/test_house_rules.py tests/test_lock.py

fix: $(READY) ## Repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

cov: $(READY) ## Run the tests with branch coverage
	$(PY) -m pytest --cov --cov-branch --cov-report=term-missing $(PYTEST_FLAGS)

bench: $(READY) ## Run the benchmarks; one JSON line a workload
	@for file in tests/bench/*.py; do $(PY) "$$file" || exit 1; done

readme: $(READY) ## Write the README's example output again
	$(PY) docs/examples/demo/refresh.py

lock: $(READY) ## Write the lock files again from pyproject.toml (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) $(UPGRADE) --output-file requirements.lock
	$(COMPILE) $(UPGRADE) --group dev --output-file requirements-dev.lock

build: $(READY) ## Build wheel and sdist into dist/
	rm -rf dist
	$(BIN)/hatchling build --directory dist

clean: ## Remove the environment and everything built or cached
	rm -rf $(VENV) build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
