# Works on a machine that has only Python >= 3.11 and make; `make help` lists the targets.

PYTHON ?= python3
CORES ?= all
CONFIG ?=
UV ?= $(shell command -v uv 2>/dev/null)
REPORT ?= results/report.zip
KILLS ?= 50
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 0

# Paths are relative, so that the checkout may lie anywhere; PATH lets the rules find `fedpapers`.
READY := .venv/complete
IN_VENV := PATH="$$PWD/.venv/bin:$$PATH"
ifneq ($(UV),)
make_venv = "$(UV)" venv --quiet --python "$$(command -v "$(PYTHON)")" $(1)
install = "$(UV)" pip install --quiet --python $(1)/bin/python
else
make_venv = "$(PYTHON)" -m venv $(1)
install = $(1)/bin/python -m pip install -qq --disable-pip-version-check
endif

# A configuration in place of config.yaml.
ifneq ($(filter-out $(wildcard $(CONFIG)),$(CONFIG)),)
$(error CONFIG=$(CONFIG): no such file; expected a configuration, such as configs/tiny.yaml)
endif
SNAKEMAKE := snakemake $(if $(CONFIG),--replace-workflow-config --configfile $(CONFIG))

.PHONY: all setup report test bench chaos fuzz lint lock docs help

all: $(READY)  ## run the default experiment, embedded scale
	$(IN_VENV) $(SNAKEMAKE) --cores $(CORES)

setup: $(READY)  ## only the environment, .venv

report: all  ## every table and figure with its caption, for a browser (REPORT=results/report.zip)
	$(IN_VENV) $(SNAKEMAKE) --report "$(REPORT)"

test: lint  ## lint, then all tests (TESTS="-k mechanism" for some of them)
	$(IN_VENV) OMP_NUM_THREADS=1 pytest -n logical --maxprocesses 4 --dist loadgroup $(TESTS)

bench: $(READY) .bench_cache/pfl/complete .bench_cache/flower/complete  ## the engine beside pfl and Flower; needs 12 GB more
	PYTHONPATH=src:. .venv/bin/python -m benchmarks.compare
	PYTHONPATH=src:. .venv/bin/python -m benchmarks.growth

chaos: $(READY)  ## kill the tiny workflow at random, many times (KILLS=50)
	$(IN_VENV) FEDPAPERS_KILLS=$(KILLS) pytest tests/test_chaos.py

fuzz: $(READY)  ## read damaged files of every kind (FUZZ_SECONDS=600, FUZZ_SEED=0)
	$(IN_VENV) OMP_NUM_THREADS=1 FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) pytest -q -s tests/test_fuzz.py

lint: $(READY)  ## formatting, lint and types
	$(IN_VENV) ruff check .
	$(IN_VENV) ruff format --check .
	$(IN_VENV) snakefmt --check Snakefile rules
	$(IN_VENV) mypy
	$(IN_VENV) snakemake --lint

docs: $(READY)  ## the documentation site: build/site/index.html
	$(IN_VENV) NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet

lock: $(READY)  ## pin what is installed in .venv now: envs/requirements.txt, envs/fedpapers.yaml
	.venv/bin/python envs/lock.py
	@touch $(READY)

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '%-8s %s\n' "$$name" "$$text"; done
	@echo "Settings: CORES=$(CORES) CONFIG=$(or $(CONFIG),config.yaml) PYTHON=$(PYTHON) UV=$(UV) (UV= for pip)"

# The mark of a finished set-up holds the checkout's place: an environment does not survive a move. Without
# the mark the environment starts afresh: a set-up that was stopped half-way is not to be trusted.
ifneq ($(shell test -x .venv/bin/python && cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
PREPARE := rm -rf .venv && $(call make_venv,.venv)
else
PREPARE := rm -f $(READY)
endif

$(READY): envs/requirements.txt pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "fedpapers needs Python 3.11 or newer; $(PYTHON) is older or missing: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up .venv from envs/requirements.txt (7 GB, a minute or more the first time)"
	@$(PREPARE)
	@$(call install,.venv) --requirement envs/requirements.txt
	@$(call install,.venv) --no-deps --no-build-isolation --editable .
	@pwd -P > $@

# The peers of `make bench`, each in an environment of its own.
.bench_cache/%/complete: benchmarks/%.txt
	@echo "Setting up $(@D) from $< (6 GB)"
	@rm -rf $(@D) && $(call make_venv,$(@D))
	@$(call install,$(@D)) --requirement $<
	@touch $@
