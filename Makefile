# rewardstack: `make help` lists the targets.
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh
# These variables of the user's shell would make Python find other modules, or recompile all of them in each process.
unexport PYTHONHOME PYTHONPATH PYTHONSAFEPATH PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PREPARE := $(BIN)/python -m services.stack
SERVICES := $(BIN)/python -m services.up
PYTEST := $(BIN)/python -m pytest
PROCESS_MARKERS := process or stack or compose or engine or model
# Tests mostly wait for backoffs and processes, so several workers per core keep the cores busy.
CORES := $(shell getconf _NPROCESSORS_ONLN)
CHECK_WORKERS := $(shell echo $$(($(CORES) * 3 / 2)))
TEST_WORKERS := $(shell echo $$(($(CORES) * 5 / 2)))
PYTHON_CODE := client cli verifier services tests benchmarks docs

# Commands on a running stack need no packages: they work with any Python and with a broken .venv.
define services
@python=$$(sh services/stack/find_python.sh any) || \
	{ echo "no Python >= 3.10 was found, which is needed to query or stop the stack"; exit $(2); }; \
PYTHONPATH=client:services/rules exec "$$python" -m services.up $(1)
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: preflight setup ## start the stack, wait until it is healthy, score the bundled samples
	@$(SERVICES) up

.PHONY: plan
plan: setup ## print what make up would do, and why; .env.local as values for Helm
	@$(SERVICES) plan

.PHONY: status
status: ## print state, process or container, uptime and health of each service (json=1: as JSON)
	$(call services,status $(if $(json),--json),1)

.PHONY: logs
logs: ## print the last lines of the logs (s=rules: of one service; f=1: follow)
	$(call services,logs $(if $(s),--service '$(s)') $(if $(f),--follow),1)

.PHONY: down
down: ## stop the stack; the queue's jobs stay
	$(call services,down,0)

.PHONY: images
images: setup ## build the container image of reward server and workers (REGISTRY=registry.example.com/team: push it there)
	@$(SERVICES) images $(if $(REGISTRY),--registry '$(REGISTRY)')

.PHONY: dist
dist: setup-dev ## build wheels, sdists, chart and image into dist/, and test them in an empty environment (smoke=1: without the image, for CI)
	@$(SERVICES) dist $(if $(smoke),--no-image)
	@$(PYTEST) --numprocesses 0 tests/release/running_release.py $(if $(smoke),-m 'not engine')

.PHONY: sif
sif: ## build the Apptainer images that are missing or outdated (t="rules judge-cpu": only these)
	@sh apptainer/stack.sh build $(t)

.PHONY: models
models: setup ## install vLLM, sentence-transformers and small models (some gigabytes; make up does so too)
	@$(SERVICES) models

FAST_TESTS = $(PYTEST) --numprocesses $(CHECK_WORKERS) --dist worksteal -m "not ($(PROCESS_MARKERS) or nightly)" tests
PROCESS_TESTS = $(PYTEST) --numprocesses $(TEST_WORKERS) --dist loadgroup --no-loadscope-reorder \
	-m "($(PROCESS_MARKERS)) and not nightly" tests

.PHONY: check
check: lint ## run lint, type checks and the tests that start no processes, in 90 seconds
	@$(FAST_TESTS)

# Make runs lines that contain $(MAKE) even under --dry-run, so the line that runs t has none.
.PHONY: test
test: setup-dev ## run make check, then the tests with real processes, in ten minutes (t="tests/native -k port": only these)
ifdef t
	@$(PYTEST) $(t)
else
	@$(MAKE) check process-tests
endif

.PHONY: process-tests
process-tests:
	@$(PREPARE) programs || echo "the tests that need them are skipped"
	@$(PROCESS_TESTS)

.PHONY: slowed
slowed: setup-dev ## run the fast tests beside four busy processes per core; no verdict may depend on time
	@$(BIN)/python -m tests.slowed $(FAST_TESTS)

.PHONY: slowed-processes
slowed-processes: setup-dev ## run the tests with real processes beside four busy processes per core
	@$(PREPARE) programs
	@$(BIN)/python -m tests.slowed $(PROCESS_TESTS)

# No setup-dev: the targets that it runs depend on it, and an unknown target fails before anything is installed.
.PHONY: nightly
nightly: ## run all long tests one after another, with a table of results; takes hours (t="chaos soak": only these)
	@python=$$(sh services/stack/find_python.sh) && "$$python" -m tests.nightly $(if $(changed),--changed) $(t)

.PHONY: slow-tests
slow-tests: setup-dev ## run the tests with real processes that are too slow for make test
	@$(PREPARE) programs
	@$(PYTEST) --numprocesses $(TEST_WORKERS) --dist loadgroup --no-loadscope-reorder -m "nightly and not model" --ignore tests/verifier tests

.PHONY: model-tests
model-tests: setup-dev $(if $(filter litellm,$(t)),,models) ## run the tests with real vLLM, embedding and LiteLLM servers (t=litellm: only these)
	@test -x .litellm/bin/litellm || { $(BIN)/python -m venv .litellm && \
		.litellm/bin/pip install --quiet --disable-pip-version-check 'litellm[proxy]'; } || echo "LiteLLM cannot be installed: its tests are skipped"
	@$(PREPARE) programs
	@$(PYTEST) --numprocesses 0 -m model tests$(if $(t),/$(t))

.PHONY: differential
differential: setup-dev ## compare verdicts to math_verify and other projects' test suites (in the folder PEER_SUITES); check linear time
	@$(PYTEST) --numprocesses auto --dist worksteal -m nightly tests/verifier

.PHONY: pythons
pythons: setup-dev ## install everything and run the client's fast tests with each Python of this machine (smoke=1: oldest and newest)
	@$(BIN)/python -m tests.pythons $(if $(smoke),--smoke)

.PHONY: bench
bench: setup-dev ## run the benchmarks and write a page with plots (t="rules cache": only these; smoke=1: small; publish=1: into docs; note="a quiet machine")
	@$(PREPARE) programs
	@$(BIN)/python -m benchmarks $(if $(smoke),--smoke) $(if $(publish),--publish) $(if $(note),--note '$(subst ','\'',$(note))') $(t)

.PHONY: fuzz
fuzz: setup-dev ## send the reward server 10,000 generated and hostile requests (n=100: fewer); none may return 500; rewritten answers must keep their verdicts
	@$(BIN)/python -m tests.verifier.fuzz $(if $(n),--questions $(n) --near $(n) --pairs $(n) --mutations $(n))
	@$(PREPARE) programs
	@$(BIN)/python -m tests.rules.fuzz --requests $(or $(n),10000)

.PHONY: chaos
chaos: setup-dev ## inject faults into a separate stack of containers under load, and count the failures (smoke=1: short)
	@$(BIN)/python -m tests.chaos $(if $(smoke),--smoke)

.PHONY: soak
soak: setup-dev ## run load, hostile requests and faults for an hour; no resource may grow (minutes=15; smoke=1: short)
	@$(PREPARE) programs
	@$(BIN)/python -m tests.soak $(if $(smoke),--smoke) $(if $(minutes),--minutes $(minutes))

.PHONY: machines
machines: setup-dev ## run the README quick start in clean and broken Debian containers (t="disk ports": only these; smoke=1: for CI)
	@$(BIN)/python -m tests.machines $(if $(smoke),--smoke) $(t)

# Not part of `make test`: the pods with models take a quarter of an hour.
.PHONY: helm
helm: setup-dev ## test the Helm chart: lint, all scenarios, its pods as containers (smoke=1: pods without models, for CI)
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/helm $(if $(smoke),-k 'running_pods and rules')

# Not part of `make test`: the large images take a quarter of an hour.
.PHONY: apptainer
apptainer: setup-dev ## test Apptainer: build the images without root, start and stop the stack (smoke=1: without models, for CI)
	@$(PYTEST) --numprocesses 0 tests/apptainer/running_stack.py $(if $(smoke),-k small)

# Not part of `make test`.
.PHONY: slurm
slurm: setup-dev ## test the Slurm jobs on a cluster of logical nodes (smoke=1: one training job without models, for CI)
	@$(PYTEST) --numprocesses 0 tests/slurm/running_jobs.py $(if $(smoke),-k fails)

# Only this target needs datasets (0.3 GB), with which verl reads Parquet.
.PHONY: data
data: setup-dev ## test training data: prepare the shipped samples, read them as verl does, and score them with a fake judge
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt datasets
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/data

# Not part of `make test`.
.PHONY: code
code: setup-dev ## test the sandbox: all attacks natively and in a container, load, HumanEval and MBPP (HUMAN_EVAL, MBPP: their files; smoke=1: for CI)
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/code $(if $(smoke),-m 'not nightly and not engine')

# Not part of `make test`: it needs Ray.
.PHONY: ray
ray: setup-dev ## test the judge as a Ray actor, with real vLLM and with fake engines (smoke=1: fake engines only, for CI)
	@$(if $(smoke),,$(MAKE) models)
	@$(BIN)/python -m tests.ray_judge $(if $(smoke),--smoke)

# Not part of `make test`: each trainer takes gigabytes.
.PHONY: trainers
trainers: setup-dev ## run each trainer's own package with rewards of a live server (t="trl verl": only these; smoke=1: for CI; newest=1: unpinned)
	@$(if $(smoke),,$(MAKE) models)
	@$(BIN)/python -m tests.trainers $(if $(smoke),--smoke) $(if $(newest),--newest) $(t)

.PHONY: lint
lint: setup-dev ## check style, types and import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(wildcard $(PYTHON_CODE))
	@$(BIN)/lint-imports --no-logo --no-cache

.PHONY: settings
settings: setup-dev ## generate .env, docs/settings.md, the compose files and the chart; write the version into every file that has it
	@$(PREPARE) settings

.PHONY: docs
docs: setup-dev ## build the documentation site into site/; open site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: format
format: setup-dev ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: clean
clean: ## stop the stack and remove everything that make has created, including volumes and jobs
	$(call services,clean,0)
	@said=$$({ rm -rf .run .models .ray .trainers .venv benchmarks/results dist site .pytest_cache .mypy_cache .ruff_cache && \
	find $(wildcard $(PYTHON_CODE)) -name __pycache__ -type d -prune -exec rm -rf {} +; } 2>&1) || \
	{ echo "ERROR: $$(echo "$$said" | head -n 1) — their owner, or root (sudo make clean), can remove them"; exit 1; } >&2

# Checks before any Python package is installed.
.PHONY: preflight
preflight:
	@python=$$(sh services/stack/find_python.sh any || sh services/stack/find_python.sh) && \
	PYTHONPATH=client:services/rules "$$python" -m services.up preflight

.PHONY: setup
setup:
	@python=$$(sh services/stack/find_python.sh) && "$$python" -m services.stack setup

.PHONY: setup-dev
setup-dev:
	@python=$$(sh services/stack/find_python.sh) && "$$python" -m services.stack setup --dev
