# Every command sets up what it needs, on a machine that has Python 3.11 to 3.13 and make.

FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for candidate in python3.13 python3.12 python3.11 python3; do \
	$$candidate -c 'import venv, ensurepip; $(FITS)' 2>/dev/null && { echo $$candidate; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
DATA := $(or $(DATA_DIR),.data)
export PATH := $(abspath $(BIN)):$(PATH)
# Where Python finds the packages below tools/.
export PYTHONPATH := $(abspath tools)$(if $(PYTHONPATH),:$(PYTHONPATH))
MAKEFLAGS += --no-print-directory
# Compiled modules let a host start in two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run func submit operator test check types declared diagrams reference bicep snapshots parameters soak explore differential mutants pattern pictures bench prices simulation policies way concurrency clean lock

help:
	@echo 'make run      start the whole system on this machine (HOSTS=3 make run: three functions hosts)'
	@echo 'make func     run the same app under Azure Functions Core Tools and Microsoft'"'"'s emulators'
	@echo '              (needs func and Docker)'
	@echo 'make operator ARGS="list"   run a command of the operators'"'"' tools on the running system, like'
	@echo '              .venv/bin/operators list (ARGS="--help" lists all commands)'
	@echo 'make submit ORDER=...   put an order, a JSON object, on the queue of the running system'
	@echo 'make test     run all tests except the slow ones of make soak, without Docker and Azure'
	@echo '              (ARGS="-k sweep" selects tests; TEST_BROWSER=npm uses the browser from npm, even'
	@echo '              if this machine has one)'
	@echo 'make soak     run the slow tests, with full sizes, long outages and many kills, in half an hour'
	@echo '              (SLICE="kills pages" selects slices of tests/slices.py; NIGHTLY=1 runs'
	@echo '              the largest sizes)'
	@echo 'make check    check style, types, import rules and declared libraries, and that every'
	@echo '              rule of the pattern has a test'
	@echo 'make types    run only the checks of types and import rules of make check'
	@echo 'make declared compare the deployed files with the business (ARGS=--write updates them;'
	@echo '              ARGS="--deploy claims.business:CLAIMS" deploys another business)'
	@echo 'make diagrams compare the state diagrams with the tables of states (ARGS=--write draws them)'
	@echo 'make reference   compare docs/reference with the code (ARGS=--write updates the pages)'
	@echo 'make bicep    build and lint the Bicep template with Microsoft'"'"'s compiler, and compare what it'
	@echo '              would deploy with tests/deployment/snapshots (BICEP=/path/to/bicep; by default'
	@echo '              the Bicep of azd or az)'
	@echo 'make snapshots   compare only the snapshots of make bicep (ARGS=--write updates them)'
	@echo 'make parameters   compare only the parameters in the documents (ARGS=--write updates them)'
	@echo 'make explore  go through every state of small worlds with every fault, in some minutes (make test'
	@echo '              runs the smaller ones; ARGS="pair" selects worlds)'
	@echo 'make differential BASE=commit   compare the decisions about orders with those of a commit'
	@echo '              (default: the last one; ARGS=--full adds all snapshots of make explore, in minutes)'
	@echo 'make mutants  make small changes to the code, each of which a test has to notice'
	@echo '              (ARGS="engine", "engine.domain" or "table" selects a part that takes minutes,'
	@echo '              ARGS="SUP-5" selects fewer changes)'
	@echo 'make pattern  list the rules of the pattern with the tests that prove them'
	@echo 'make pictures take pictures of the pages, with Chromium, into .pictures'
	@echo 'make bench    run orders through the embedded stack, with one process and with one for each'
	@echo '              function, and print one JSON line (ARGS="--orders 200 --shape one")'
	@echo 'make prices   compute the cost of an order and of an idle day, from a dated price list'
	@echo '              (ARGS=--write writes them into docs/operations/cost.md)'
	@echo 'make simulation   compute the cost of an order at rates that one machine cannot reach'
	@echo '              (ARGS="--rate 500 --instances 10")'
	@echo 'make policies   compare the admission policies, in virtual time'
	@echo 'make way      print the functions that an order goes through'
	@echo 'make concurrency   measure how many calls over HTTP an instance can take at the same time'
	@echo 'make clean    empty the data folder of make run'
	@echo 'make lock     write the requirements files again from pyproject.toml'
	@echo 'To use another Python, in a separate environment: make test VENV=.venv-3.12 PYTHON=python3.12'

run: $(VENV)/.installed tools/functions_alone/node_modules/.installed
	@exec $(BIN)/python -m development run

func: $(VENV)/.installed
	@exec $(BIN)/python -m development.core_tools

operator: $(VENV)/.installed
	@$(BIN)/python -m operations $(ARGS)

test: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed $(VENV)/clean/.installed $(VENV)/.compiled browser
	@$(BIN)/python -m pytest $(ARGS)

soak: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed browser
	@$(if $(ARGS),$(BIN)/python -m pytest -n 0 -v --timeout 1800 -m soak $(ARGS),$(BIN)/python -m tests.soak $(SLICE))

check: $(VENV)/.installed-dev engine/pages/node_modules/.installed
	@echo '[check] style'
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m development.checks
	@echo '[check] each library that is imported is declared'
	@$(BIN)/deptry --no-ansi .
	@$(BIN)/deptry --no-ansi . tools infra/hooks tests/businesses --exclude '\.|.*node_modules/|.*/build/' \
		--ignore DEP002,DEP004
	@cd tools/functions_alone && ../../$(BIN)/deptry --no-ansi .
	@echo '[check] a test for each rule of the pattern (half a minute)'
	@$(BIN)/python -m tests.pattern --brief
	@echo '[check] what follows from the declarations of each business'
	@$(BIN)/python -m development.declared
	@echo '[check] the JavaScript of the pages'
	@engine/pages/node_modules/.bin/tsc -p engine/pages
	@engine/pages/node_modules/.bin/prettier --check --log-level warn --config engine/pages/package.json \
		--ignore-path engine/pages/.prettierignore engine/pages/static engine/pages/tests \
		operations/console/static operations/console/tests shop/page shop/tests

types: $(VENV)/.installed-dev
	@$(BIN)/python -m development.checks

declared snapshots parameters: $(VENV)/.installed
	@$(BIN)/python -m development.$@ $(ARGS)

diagrams: $(VENV)/.installed
	@$(BIN)/python -m development.state_diagrams $(ARGS)

reference: $(VENV)/.installed
	@$(BIN)/python -m development.reference $(ARGS)

submit: $(VENV)/.installed
	@$(BIN)/python -m development submit $(ARGS) -- "$$ORDER"

bicep: $(VENV)/.installed
	@$(BIN)/python -m development.bicep
	@$(BIN)/python -m development.snapshots
	@$(BIN)/python -m development.parameters

explore: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.exploration $(ARGS)

differential: $(VENV)/.installed-dev
	@$(BIN)/python -m development.differential --base '$(or $(BASE),HEAD)' $(ARGS)

mutants: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed
	@$(BIN)/python -m tests.mutants $(ARGS)

pattern: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.pattern

pictures: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed browser
	@$(BIN)/python -m tests.pictures

bench: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed
	@$(BIN)/python -m bench $(ARGS)

prices simulation policies: $(VENV)/.installed-dev
	@$(BIN)/python -m bench.$@ $(ARGS)

way concurrency: $(VENV)/.installed-dev tools/functions_alone/node_modules/.installed
	@$(BIN)/python -m bench.$@ $(ARGS)

# Only what the stack puts there: DATA_DIR may name a folder that holds other things too.
clean:
	@echo 'emptying $(DATA); a running stack is not stopped'
	@cd '$(DATA)' 2>/dev/null && rm -rf azurite broker logs Config.json hosts.json slowdown lock layout || true

LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml

lock: $(VENV)/.installed
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r infra/hooks/uv.txt
	@$(LOCK) -o requirements.txt
	@$(LOCK) --group local -c requirements.txt -o requirements-local.txt
	@$(LOCK) --group dev -c requirements-local.txt -o requirements-dev.txt

# The environment is made anew if its Python is missing or does not fit; an editor may have made it.
$(VENV)/.installed: requirements-local.txt tools/development/install.py
	@python='$(PYTHON)'; $(BIN)/python -c '$(FITS)' 2>/dev/null || { \
		"$$python" -c 'import venv, ensurepip; $(FITS)' 2>/dev/null || { \
			echo 'Missing: Python 3.11, 3.12 or 3.13 with venv and pip (on Debian: python3-venv).' \
				'Install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1; }; \
		echo "[setup] making $(VENV) with $$python"; \
		{ test ! -f '$(VENV)/pyvenv.cfg' || rm -rf '$(VENV)'; } && "$$python" -m venv --without-pip '$(VENV)'; }
	@echo '[setup] installing what the app needs on this machine into $(VENV) (some seconds, the first time only)'
	@$(BIN)/python -m development.install $<
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo '[setup] installing what tests and checks need into $(VENV) (some seconds, the first time only)'
	@$(BIN)/python -m development.install $<
	@touch $@

# Otherwise each worker would compile all tests, at the same time. make test reports what is wrong with a test.
$(VENV)/.compiled: | $(VENV)/.installed-dev
	@echo '[setup] compiling the tests (5 seconds, the first time only)'
	@$(BIN)/python -m pytest --collect-only -qq -n 0 >/dev/null 2>&1 || true
	@touch $@

$(VENV)/clean/.installed: requirements.txt | $(VENV)/.installed-dev
	@echo '[setup] installing what is deployed, and no more, into $(VENV)/clean (10 seconds, the first time only)'
	@PYTHONPATH=".:$$PYTHONPATH" $(BIN)/python tests/support/deployed_package.py
	@touch $@

# The program selects the browser, here and in the tests.
.PHONY: browser
browser: $(VENV)/.installed
	@$(BIN)/python tests/support/browsers.py

# npm would empty the folder that a link leads to, which may be another checkout's.
REFUSE_LINK = test ! -L $(@D) || { \
	echo '$(@D) is a link, and npm would empty the folder that it leads to. Remove the link (rm $(@D)).' >&2; exit 1; }

engine/pages/node_modules/.installed: engine/pages/package-lock.json | $(VENV)/.installed
	@$(REFUSE_LINK)
	@echo '[setup] installing what checks the pages into engine/pages/node_modules (10 seconds, the first time only)'
	@cd engine/pages && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

tools/functions_alone/node_modules/.installed: tools/functions_alone/package-lock.json | $(VENV)/.installed
	@$(REFUSE_LINK)
	@echo '[setup] installing Azurite and the AMQP library into tools/functions_alone/node_modules (some seconds, the first time only)'
	@cd tools/functions_alone && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
