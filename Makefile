# SPDX-License-Identifier: BSD-3-Clause
# Everything a user or a developer types. PYTHON is the system's by default: a python3 that is first on PATH
# (pyenv, conda) may lack venv or headers. It must be 3.11 or later.

PYTHON ?= /usr/bin/python3
VENV   := .venv
BIN    := $(VENV)/bin
SHELL  := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# What the installed package is made from. .stamps/sources lists the names, so that a deleted file counts as a change.
SOURCES := $(shell find dataplane planebench planebench_fib -type f -not -path '*/__pycache__/*' 2>/dev/null | LC_ALL=C sort)
BUILD_FILES := pyproject.toml meson.build meson_options.txt README.md LICENSE
C_FILES := $(filter %.c %.h,$(SOURCES))

.PHONY: help setup packages bench bench-statistics bench-fib record smoke test test-all test-requirements lab lowest unit-tests docs docs-check fuzz soak crash sanitize lint format wheel wheel-fib bench-image image-check clean FORCE

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

setup: .stamps/dev ## Debian packages, build, and what tests and lint need: leaves the command in .venv/bin/planebench
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "setup: done; next: make bench (or $(BIN)/planebench run --help)")

bench: .stamps/installed ## the quick suite: table in the terminal, HTML report
	$(BIN)/planebench run quick

bench-statistics: setup ## whether intervals and answers keep what they claim, by simulation (minutes); SEEDS=100 RUNS=10: shorter
	$(BIN)/python bench/conclusions.py $(if $(SEEDS),--seeds $(SEEDS)) $(if $(RUNS),--runs $(RUNS))
	$(BIN)/python bench/trends.py $(if $(SEEDS),--seeds $(SEEDS))

bench-fib: setup ## the FIB at up to a billion routes against its bars; ENTRIES=100000000: smaller
	@$(MAKE) unit-tests
	$(BIN)/python bench/fib.py $(if $(ENTRIES),--entries $(ENTRIES))

record: setup ## docs/results made anew: measures the suites of the papers, each twice, four to six hours; RUNS="runs/A runs/B": from these runs
	$(BIN)/python scripts/record.py $(or $(RUNS),--measure)

smoke: setup ## the tests that start no data plane, side by side: two minutes
	$(BIN)/python -P -m pytest -q -n 2 -m "not dataplane and not slow and not root"

test: setup ## unit tests of planed, then pytest against the installed package
	@$(MAKE) test-requirements
	$(BIN)/python -P -m pytest -n 2 -m "not lab and not all"

test-all: setup ## make test, and the rest of the tests with a browser, containers and guests
	@$(MAKE) test-requirements
	$(BIN)/python -P -m pytest -n 2 -m "not lab"

lab: setup ## emulated NICs with cables in a QEMU guest: binding, wire pci, exact counts; MODEL=igb: only these
	@scripts/setup.sh qemu-system-x86 busybox-static
	@# The packages start daemons: only where the machine, a container, says that none starts.
	@[ ! -x /usr/sbin/policy-rc.d ] || scripts/setup.sh slurm-wlm munge || echo "lab: no Slurm, so tests of jobs are skipped"
	@[ ! -x /usr/sbin/policy-rc.d ] || scripts/setup.sh openssh-server || echo "lab: no sshd: tests with it are skipped"
	$(BIN)/python -P -m pytest -v -m "lab or slow" tests/lab tests/cli/test_lab.py tests/cli/test_ci_templates.py tests/cli/test_jobs.py tests/e2e/test_two_hosts.py tests/jobs tests/planed/test_offloads_peers.py $(if $(MODEL),-k $(MODEL))

lowest: setup ## make smoke's tests with the oldest release of each dependency that pyproject.toml allows
	$(BIN)/pip install --quiet uv
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) .stamps/lowest
	$(BIN)/uv pip install --quiet --python .stamps/lowest/bin/python --resolution lowest-direct \
		-r pyproject.toml --extra dev
	PYTHONPATH=$(CURDIR) PLANEBENCH_PLANED=$(CURDIR)/$(BIN)/planed .stamps/lowest/bin/python -m pytest -q -n 2 \
		-m "not dataplane and not slow and not root"

test-requirements:
	@$(MAKE) unit-tests
	@scripts/setup.sh valgrind || echo "test: no valgrind, so the instructions of the tester are not counted"
	@# Four at once on two cores as well: the longest of them wait.
	meson test -C build --print-errorlogs --num-processes 4
	@scripts/setup.sh chromium fonts-liberation || echo "test: no chromium, so the tests of the page in a browser are skipped"
	@scripts/setup.sh bird2 ethtool || echo "test: no BIRD, so the example of a routing daemon is skipped"
	@scripts/setup.sh qemu-system-x86 busybox-static || echo "test: no QEMU, so tests with guests are skipped"
	@scripts/setup.sh syslinux mtools qemu-utils || echo "test: no tools for disk images, so the test of one as a VNF is skipped"
	@scripts/setup.sh bubblewrap || echo "test: no bubblewrap, so tests with containers are skipped"
	@# These packages start a server and a router: only where the machine, a container, says that none starts.
	@[ ! -x /usr/sbin/policy-rc.d ] || scripts/setup.sh openssh-server || echo "test: no sshd, so tests of two hosts are skipped"
	@[ ! -x /usr/sbin/policy-rc.d ] || scripts/setup.sh frr || echo "test: no FRR, so the example with it is skipped"

# Into the build folder of setup, so that planed is compiled once.
unit-tests:
	@scripts/setup.sh libcmocka-dev
	@test -f build/build.ninja || meson setup build
	meson configure build -Dtests=true -Dwerror=true
	ninja -C build --quiet

docs: .stamps/docs ## these pages as a site with a search, in site/: opens without a network; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "docs: site/index.html"

.stamps/docs: .stamps/venv
	$(BIN)/pip install --quiet 'mkdocs-material>=9.6,<10' 'mkdocs<2'
	@touch $@

docs-check: setup ## every command of README.md, docs/ and --help, run; half an hour; PAGES=docs/chains.md: only these; FROM=docs/chains.md
	$(BIN)/python scripts/docs_check.py $(if $(FROM),--from $(FROM)) $(PAGES)

fuzz: setup ## malicious drivers, documents and clients under libFuzzer and hypothesis: SECONDS=60 of each; installs clang
	@PYTHON=$(BIN)/python scripts/fuzz.sh $(or $(SECONDS),60)

soak: setup ## planed as a switch under everything at once: HOURS=1; a table of what was lost, leaked or grew
	$(BIN)/python bench/soak.py --hours $(or $(HOURS),1)

crash: setup ## kill -9 of each part of a run at N=100 moments: readable, resumed, nothing left
	$(BIN)/python bench/crash.py -n $(or $(N),100)

sanitize: setup ## the tests of planed, C and Python, with a planed built with AddressSanitizer and UBSan; the FIB's with ThreadSanitizer
	@PYTHON=$(BIN)/python scripts/sanitize.sh

lint: setup ## ruff, mypy, clang-format, size budget, SPDX lines, layers, includes of C
	@scripts/setup.sh clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/python scripts/lint_sizes.py
	$(BIN)/python scripts/structure.py
	$(BIN)/python scripts/lint_names.py
	$(BIN)/python scripts/papers_coverage.py --check
	$(BIN)/python scripts/record.py --check

format: setup ## format C and Python in place
	@scripts/setup.sh clang-format
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .
	clang-format -i $(C_FILES)

wheel: .stamps/installed ## dist/planebench-*.whl
	@echo "wheel: compiling all anew, one to three minutes"
	@scripts/progress.sh .stamps/wheel.log $(BIN)/pip wheel -v --no-deps --no-build-isolation --wheel-dir dist .
	@echo "wheel: in dist/"

wheel-fib: .stamps/venv ## dist/planebench_fib-*.whl: the agent and client of a VNF alone (docs/fib-agent.md)
	$(BIN)/pip wheel --no-deps --wheel-dir dist ./planebench_fib

bench-image: wheel ## dist/planebench-*.oci.tar and .deb: the whole bench as a container image and a Debian package; OFFLINE=1: no network
	@scripts/setup.sh mmdebstrap uidmap
	@PYTHON=$(BIN)/python scripts/bench_image.sh

image-check: bench-image ## the image under podman, the wheel on Debian and Ubuntu, the Ansible role twice: half an hour, root
	@scripts/setup.sh bubblewrap podman runc catatonit
	$(BIN)/python -P -m pytest -v tests/packaging

clean: ## remove what was built; runs/ stays
	rm -rf build build-fuzz build-sanitize build-tsan dist site .stamps $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find dataplane planebench tests scripts -name __pycache__ -prune -exec rm -rf {} +

packages:
	@scripts/setup.sh

.stamps/venv: Makefile | packages
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"{sys.executable} is Python {sys.version.split()[0]}; planebench needs 3.11 or later: make PYTHON=/path/to/python3")'
	@scripts/in_use.sh $(VENV)
	@echo "setup: creating $(VENV)"
	$(PYTHON) -m venv --clear $(VENV)
	@scripts/progress.sh .stamps/venv.log $(BIN)/pip install 'meson-python>=0.17'
	@touch $@

# Not isolated and with a build folder that stays, so that a change of one file compiles one file.
.stamps/installed: .stamps/venv .stamps/sources $(SOURCES) $(BUILD_FILES) | packages
	@scripts/in_use.sh $(VENV)
	@echo "setup: building and installing planebench into $(VENV): one to three minutes the first time"
	@scripts/progress.sh .stamps/install.log \
		$(BIN)/pip install -v --no-build-isolation --config-settings=build-dir=build .
	@touch $@

# Four fifths of what is downloaded, and no run needs it. What is installed already satisfies the name.
.stamps/dev: .stamps/venv pyproject.toml | .stamps/installed
	@echo "setup: installing what tests and lint need"
	@scripts/progress.sh .stamps/dev.log $(BIN)/pip install 'planebench[dev]'
	@touch $@

.stamps/sources: FORCE
	@mkdir -p .stamps
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@
