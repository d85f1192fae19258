# Each target creates .venv first if it is missing or outdated; see `make help`. `make demo` alone creates .venv-demo,
# which has no tools of development and is less than half as large.

# The first of these that is Python 3.11 or newer; `make PYTHON=... setup` selects another.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && exit; done; echo python3)
endif
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
READY := $(VENV)/.ready
DEMO := $(if $(wildcard $(READY)),$(VENV),.venv-demo)
PLUGIN := docs/examples/plugin
PIP := $(PY) -m pip --disable-pip-version-check --quiet
# Tests run in several processes; `make test PARALLEL=` runs them in one, which a debugger needs. A process gets
# neighbouring tests, which share control planes and images, and takes tests of another when it has no more.
PARALLEL := --numprocesses auto --dist worksteal
PYTEST := $(PY) -m pytest $(PARALLEL)
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-strip-extras --no-emit-index-url --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-example control-plane oracle oracle-sweep oracle-sweeps rebalance test-oracle helm chart chart-package test-control-plane test-previous-minor test-chart test-ui screenshots test-image check fix history history-of-the-day soak soak-in-memory fuzz cov bench bench-all readme reference docs plots scan changelog lock build test-build kubectl-archive test-kubectl-archive clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Create .venv with the versions of the lock file

$(READY): requirements-dev.lock
.venv-demo/.ready: requirements.lock
$(READY) .venv-demo/.ready: pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		found=$$("$(PYTHON)" --version 2>&1) || found=missing; \
		echo "extender needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
		echo "Install it, or select another: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; }
	@"$(@D)/bin/python" -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(@D) || { \
		echo "$(PYTHON) cannot create a virtual environment; on Debian and Ubuntu install the package python3-venv." >&2; exit 1; }
	$(subst $(VENV),$(@D),$(PIP)) install --require-hashes --requirement $(filter %.lock,$^)
	$(subst $(VENV),$(@D),$(PIP)) install --no-deps $(if $(filter $(READY),$@),--no-build-isolation) --editable .
	@touch $@

demo: $(DEMO)/.ready ## Schedule an example cluster, then run explain, simulate and serve on a recorded one
	$(DEMO)/bin/extender demo
	PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" sh docs/examples/demo/run.sh

test: test-example ## Run all tests; those against a control plane only if it is built
	$(PYTEST) $(PYTEST_FLAGS)

test-fast: $(READY) ## Run unit tests, property tests, recorded cases and house rules: two minutes on two cores
	$(PYTEST) tests/unit tests/properties tests/parity tests/oracle tests/test_*.py -m "not slow" $(PYTEST_FLAGS)

# The example plugin is installed outside .venv, so that other tests do not load it.
test-example: $(READY) ## Install the example plugin as a package and run its tests
ifneq ($(wildcard $(PLUGIN)/pyproject.toml),)
	rm -rf build/example
	$(PIP) install --no-deps --no-build-isolation --no-index --target build/example ./$(PLUGIN)
	PYTHONPATH="$(CURDIR)/build/example" $(PY) -m pytest $(PLUGIN)
endif

control-plane: $(READY) ## Build etcd and the programs of KUBERNETES (1.37.2, or 1.36.3) for tests, in a cache outside the tree
	$(PY) -m tests.controlplane.build

oracle: $(READY) ## Build the oracle, which answers scenarios with kube-scheduler's own code, in a cache outside the tree
	$(PY) -m tests.oracle.build

oracle-sweep: oracle ## Compare N (1000) random scenarios of SEED (1) with the oracle of KUBERNETES (1.36.3), in SECONDS at most
	$(PY) -m tests.oracle.sweep --number $(or $(N),1000) --seed $(or $(SEED),1) --kubernetes $(or $(KUBERNETES),1.36.3) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(SWEEP_FLAGS)

oracle-sweeps: oracle ## Sweep pods and pod groups a minute with each oracle; the date is the seed
	for minor in 1.36 1.37; do $(PY) -m tests.oracle.sweep --number 1000000 --seconds 60 \
		--seed "$$(date -u +%F)" --kubernetes $$minor || exit 1; done

rebalance: $(READY) ## Check plans of moves in N (10000) random clusters of seed SEED (0) and print the figures
	REBALANCE_CLUSTERS=$(or $(N),10000) REBALANCE_SEED=$(or $(SEED),0) $(PYTEST) -n0 -s tests/properties/test_rebalance.py

test-oracle: oracle ## Run the oracle's tests
	ORACLE=required $(PYTEST) tests/oracle $(PYTEST_FLAGS)

helm: $(READY) ## Build Helm for the chart's tests, in a cache outside the tree
	$(PY) -m tests.chart.build

chart: $(READY) ## Copy the comments of the chart's values to its README and schema
	$(PY) docs/chart_values.py

chart-package: helm ## Package the chart in dist/
	$(PY) -m tests.chart.package

test-ui: $(READY) ## Run the tests of the pages in Chromium, which must be installed
	CHROMIUM=required $(PYTEST) tests/ui $(PYTEST_FLAGS)

screenshots: $(READY) ## Write the pictures of docs/ui.md, with Chromium
	CHROMIUM=required UI_SCREENSHOTS=1 $(PY) -m pytest tests/ui -k documentation

test-chart: helm ## Run the tests of the chart
	HELM=required $(PYTEST) tests/chart $(PYTEST_FLAGS)

test-image: helm control-plane ## Build and run the image; needs root and Debian's buildah, runc and mmdebstrap
	IMAGE=required CONTROL_PLANE=required HELM=required $(PY) -m pytest tests/image $(PYTEST_FLAGS)

test-control-plane: control-plane ## Run the tests against a real control plane
	CONTROL_PLANE=required $(PYTEST) tests/controlplane $(PYTEST_FLAGS)

# `make test` has the newest minor. These tests compare both schedulers, so they are enough for the previous one.
PREVIOUS_KUBERNETES := 1.36.3
test-previous-minor: $(READY) ## Build the control plane of the previous minor, and compare decisions and victims with its kube-scheduler
	KUBERNETES=$(PREVIOUS_KUBERNETES) $(PY) -m tests.controlplane.build
	KUBERNETES=$(PREVIOUS_KUBERNETES) CONTROL_PLANE=required $(PY) -m pytest tests/controlplane/test_same_decisions.py \
		tests/controlplane/test_same_victims.py $(PYTEST_FLAGS)

check: $(READY) ## Run lint, formatting, types, import direction and house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) -m pytest --quiet tests/test_house_rules.py tests/test_vocabulary.py tests/test_lock.py \
		tests/test_documented_bounds.py

fix: $(READY) ## Fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

history: control-plane ## Check the histories of FAULTS (all), SEEDS (1) runs of SECONDS (12) each; SCHEDULER=kube-scheduler is a control
	CONTROL_PLANE=required HISTORY_FAULTS="$(or $(FAULTS),all)" HISTORY_SEEDS="$(or $(SEEDS),1)" \
		HISTORY_FIRST_SEED="$(or $(FIRST_SEED),1)" HISTORY_SECONDS="$(or $(SECONDS),12)" \
		HISTORY_SHRINK="$(or $(SHRINK),6)" SCHEDULER="$(or $(SCHEDULER),extender)" $(PYTEST) --timeout=0 -rfEP tests/history $(PYTEST_FLAGS)

history-of-the-day: ## Check the histories of all faults with three seeds of the date: ten minutes on two cores
	$(MAKE) history FAULTS=all SEEDS=3 FIRST_SEED="$$(date -u +%Y%m%d)0"

soak: control-plane ## Create, bind and delete RATE (100) pods a second for SECONDS (3600) on a real control plane; one JSON line
	$(PY) tests/soak/pod_lifecycles.py --seconds "$(or $(SECONDS),3600)" --rate "$(or $(RATE),100)" \
		--max-slope "$(or $(MAX_SLOPE),1)"

soak-in-memory: $(READY) ## Run SOAK pod lifecycles (1,000,000; 2% over HTTP) and STORMS sequences of faults (200); half an hour
	SOAK=$${SOAK:-1000000} STORMS=$${STORMS:-200} $(PY) -m pytest --timeout=0 tests/faults/test_soak.py tests/faults/test_random_faults.py $(PYTEST_FLAGS)

fuzz: $(READY) ## Send FUZZ (100,000) mutated requests, and requests of schemathesis, to a running extender; half an hour
	FUZZ=$${FUZZ:-100000} $(PY) -m pytest --timeout=0 -s tests/fuzz $(PYTEST_FLAGS)

cov: $(READY) ## Run the tests with branch coverage
	$(PYTEST) --cov --cov-branch --cov-report=term-missing $(PYTEST_FLAGS)

bench: $(READY) ## Run the short benchmarks and compare them with the baseline; one JSON line per benchmark
	$(PY) tests/bench/suite.py

bench-all: control-plane ## Run all benchmarks, also on the real control plane; three hours
	$(PY) tests/bench/suite.py --all --runs 5

reference: $(READY) ## Write docs/reference from the code
	$(PY) docs/write_reference.py

# Tools with many dependencies have separate environments.
build/%-env/.ready: requirements-%.lock $(READY)
	$(BIN)/uv venv --quiet --clear --python $(PY) build/$*-env
	VIRTUAL_ENV=build/$*-env $(BIN)/uv pip install --quiet --require-hashes --requirement requirements-$*.lock
	@touch $@

# With --quiet, mkdocs would count no warnings, and --strict would have no effect.
docs: $(READY) build/docs-env/.ready ## Build the site of docs/ in build/site; a link without a target fails
	$(PY) docs/write_reference.py --check
	NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --strict --config-file .mkdocs.yml
	@! grep -rlE '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//' build/site --include='*.html' \
		|| { echo "pages of build/site load resources from other hosts" >&2; exit 1; }

plots: build/docs-env/.ready ## Draw the plots and write the table of docs/benchmarks.md from docs/benchmarks.jsonl
	build/docs-env/bin/python docs/draw_benchmarks.py

scan: build/scan-env/.ready helm ## Scan the Dockerfile, the rendered chart and the workflows; exceptions are in .scan/
	$(PY) -m tests.scan

changelog: $(READY) ## Move the fragments of docs/changelog.d to CHANGELOG.md, for the version in extender/__init__.py
	@version=$$($(PY) -c 'import extender; print(extender.__version__)'); ! grep -q "^## $$version (" CHANGELOG.md || \
	  { echo "CHANGELOG.md has $$version already; set the next __version__ in extender/__init__.py" >&2; exit 1; }
	$(BIN)/towncrier build --yes

readme: $(READY) ## Update the example output in the README and docs/ask.md
	$(PY) docs/examples/demo/refresh.py

lock: $(READY) ## Update the lock files from pyproject.toml (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) $(UPGRADE) pyproject.toml --output-file requirements.lock
	$(COMPILE) $(UPGRADE) pyproject.toml --group dev --output-file requirements-dev.lock
	@for group in image docs scan krew; do \
		$(COMPILE) $(UPGRADE) --group $$group --output-file requirements-$$group.lock || exit 1; done

build: $(READY) ## Build wheel and sdist in dist/
	rm -rf dist
	$(BIN)/hatchling build --directory dist

test-build: build ## Install wheel and sdist, each in a new environment, and run them
	sh tests/release/try.sh "$(CURDIR)/$(PY)" requirements.lock dist/*.whl dist/*.tar.gz

kubectl-archive: build ## Build dist/kubectl-placement_OS_ARCH.tar.gz, the kubectl plugin for krew, for this platform
	sh .github/krew/build_archive.sh $(PY) dist/*.whl

test-kubectl-archive: kubectl-archive ## Unpack the archive of the kubectl plugin and run it without Python
	sh tests/release/try_archive.sh dist/kubectl-placement_*.tar.gz

clean: ## Remove .venv, .venv-demo and all built or cached files
	rm -rf $(VENV) .venv-demo build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
