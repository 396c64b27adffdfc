# rewardstack: `make help` lists what there is.
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh
# What a user's Python is told elsewhere would have the stack's find other modules, or each process compile all of them.
unexport PYTHONHOME PYTHONPATH PYTHONSAFEPATH PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PREPARE := $(BIN)/python -m services.stack
SERVICES := $(BIN)/python -m services.up
PYTEST := $(BIN)/python -m pytest
PROCESS_MARKERS := process or stack or engine or model
# Tests wait for backoffs, and those with processes for these: four or five workers keep two cores busy.
CORES := $(shell getconf _NPROCESSORS_ONLN)
CHECK_WORKERS := $(shell echo $$(($(CORES) * 2)))
TEST_WORKERS := $(shell echo $$(($(CORES) * 5 / 2)))
PYTHON_CODE := client cli verifier services tests benchmarks

# Commands on a running stack: any Python can stop and remove what .venv's has started.
define services
@python=$$(sh services/stack/find_python.sh any) || \
	{ echo "no Python >= 3.10 was found, which is needed to ask or stop what runs here"; exit $(2); }; \
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
status: ## each service: state, process or container, uptime, health (json=1: for programs)
	$(call services,status $(if $(json),--json),1)

.PHONY: logs
logs: ## last lines of the logs (s=rules: of one service; f=1: follow)
	$(call services,logs $(if $(s),--service '$(s)') $(if $(f),--follow),1)

.PHONY: down
down: ## stop the stack; the queue's jobs stay
	$(call services,down,0)

.PHONY: images
images: setup ## build the container image of reward server and workers (REGISTRY=registry.example.com/team: push it there)
	@$(SERVICES) images $(if $(REGISTRY),--registry '$(REGISTRY)')

.PHONY: sif
sif: ## build Apptainer's images, those that are missing or changed (t="rules judge-cpu": these)
	@sh apptainer/stack.sh build $(t)

.PHONY: models
models: setup ## install vLLM, sentence-transformers and small models (some gigabytes; make up does so too)
	@$(SERVICES) models

.PHONY: check
check: lint ## lint, types, and the tests that start no processes: a signal in 90 seconds
	@$(PYTEST) --numprocesses $(CHECK_WORKERS) --dist worksteal -m "not ($(PROCESS_MARKERS) or nightly)" tests

# Make runs a line that contains $(MAKE) under --dry-run too, so the line that runs t has none.
.PHONY: test
test: setup-dev ## make check, then the tests with real processes, in ten minutes (t="tests/native -k port": those only)
ifdef t
	@$(PYTEST) $(t)
else
	@$(MAKE) check process-tests
endif

.PHONY: process-tests
process-tests:
	@$(PREPARE) programs || echo "the tests that need them are skipped"
	@$(PYTEST) --numprocesses $(TEST_WORKERS) --dist loadgroup --no-loadscope-reorder -m "($(PROCESS_MARKERS)) and not nightly" tests

# No setup-dev: each target that it runs has it, and an unknown one is refused before anything is installed.
.PHONY: nightly
nightly: ## every heavy proof, one after another, with a table of results; takes hours (t="chaos soak": those)
	@python=$$(sh services/stack/find_python.sh) && "$$python" -m tests.nightly $(if $(changed),--changed) $(t)

.PHONY: slow-tests
slow-tests: setup-dev ## tests with real processes that take too long for make test
	@$(PREPARE) programs
	@$(PYTEST) --numprocesses $(TEST_WORKERS) --dist loadgroup --no-loadscope-reorder -m "nightly and not model" --ignore tests/verifier tests

.PHONY: model-tests
model-tests: setup-dev models ## tests with real vLLM and embedding servers
	@$(PREPARE) programs
	@$(PYTEST) --numprocesses 0 -m model tests

.PHONY: differential
differential: setup-dev ## verdicts against math_verify and peers' test suites (those in the folder PEER_SUITES); linear time
	@$(PYTEST) --numprocesses auto --dist worksteal -m nightly tests/verifier

.PHONY: pythons
pythons: setup-dev ## install everything, and run the client's fast tests, on each Python that this machine has (smoke=1: the oldest and the newest)
	@$(BIN)/python -m tests.pythons $(if $(smoke),--smoke)

.PHONY: bench
bench: setup-dev ## run the benchmarks; their figures as a page with plots (t="rules cache": those; smoke=1: small; publish=1: into docs; note="a quiet machine")
	@$(PREPARE) programs
	@$(BIN)/python -m benchmarks $(if $(smoke),--smoke) $(if $(publish),--publish) $(if $(note),--note '$(subst ','\'',$(note))') $(t)

.PHONY: fuzz
fuzz: setup-dev ## send the reward server 10,000 generated and hostile requests (n=100: fewer); none may be a 500; answers anew
	@$(BIN)/python -m tests.verifier.fuzz $(if $(n),--questions $(n) --near $(n) --pairs $(n))
	@$(PREPARE) programs
	@$(BIN)/python -m tests.rules.fuzz --requests $(or $(n),10000)

.PHONY: chaos
chaos: setup-dev ## disturb a stack of its own in containers, under load, and count what suffers (smoke=1: in the small)
	@$(BIN)/python -m tests.chaos $(if $(smoke),--smoke)

.PHONY: soak
soak: setup-dev ## load, hostile requests and faults for an hour: nothing may grow (minutes=15; smoke=1: in the small)
	@$(PREPARE) programs
	@$(BIN)/python -m tests.soak $(if $(smoke),--smoke) $(if $(minutes),--minutes $(minutes))

.PHONY: machines
machines: setup-dev ## README's commands on bare and on spoilt machines, each a container (t="disk ports": those; smoke=1: for CI)
	@$(BIN)/python -m tests.machines $(if $(smoke),--smoke) $(t)

# The pods are no part of `make test`: with models they take a quarter of an hour.
.PHONY: helm
helm: setup-dev ## the chart for Kubernetes: lint, all scenarios, its pods as containers (smoke=1: the pods without models, for CI)
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/helm $(if $(smoke),-k 'running_pods and rules')

# The stack out of Apptainer's images is no part of `make test` either: with the large ones it takes a quarter of an hour.
.PHONY: apptainer
apptainer: setup-dev ## the definitions for Apptainer: built without root, the stack up and down (smoke=1: without models, for CI)
	@$(PYTEST) --numprocesses 0 tests/apptainer/running_stack.py $(if $(smoke),-k small)

# Nor are the jobs for Slurm.
.PHONY: slurm
slurm: setup-dev ## the jobs for Slurm, on a cluster of logical nodes (smoke=1: one that trains, without models, for CI)
	@$(PYTEST) --numprocesses 0 tests/slurm/running_jobs.py $(if $(smoke),-k fails)

# datasets, with which verl reads parquet, is a third of a gigabyte that nothing else needs.
.PHONY: data
data: setup-dev ## training data: the shipped samples prepared, read as verl reads them, and scored by a judge that pretends
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt datasets
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/data

# Nor are all attacks of programs, in processes and in a container.
.PHONY: code
code: setup-dev ## run the policy's programs: every attack natively and in a container, load, HumanEval and MBPP (HUMAN_EVAL, MBPP: their files; smoke=1: for CI)
	@$(PYTEST) --numprocesses 0 -o python_files='test_*.py running_*.py' tests/code $(if $(smoke),-m 'not nightly and not engine')

# Nor is the judge in Ray, which needs Ray.
.PHONY: ray
ray: setup-dev ## the judge as a Ray actor, with real vLLM and with engines that pretend (smoke=1: those only, for CI)
	@$(if $(smoke),,$(MAKE) models)
	@$(BIN)/python -m tests.ray_judge $(if $(smoke),--smoke)

# Nor are the trainers, some gigabytes each.
.PHONY: trainers
trainers: setup-dev ## each trainer's own package on rewards of a live server (t="trl verl": those; smoke=1: for CI; newest=1: unpinned)
	@$(if $(smoke),,$(MAKE) models)
	@$(BIN)/python -m tests.trainers $(if $(smoke),--smoke) $(if $(newest),--newest) $(t)

.PHONY: lint
lint: setup-dev ## check style, types and import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(wildcard $(PYTHON_CODE))
	@$(BIN)/lint-imports --no-logo --no-cache

.PHONY: settings
settings: setup-dev ## write .env, docs/settings.md, the compose files and the chart from the table of settings
	@$(PREPARE) settings

.PHONY: format
format: setup-dev ## put the code into the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: clean
clean: ## stop the stack and remove all that make has made: volumes and jobs too
	$(call services,clean,0)
	@said=$$({ rm -rf .run .models .ray .trainers .venv benchmarks/results .pytest_cache .mypy_cache .ruff_cache && \
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
