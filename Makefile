# Everything that can be done in a clone. `make help` lists it.
# The tools are checked first and set-up is done on the way, so that each target
# works alone and in a new clone.

SHELL := /bin/sh
PYTHON_ENV := .venv/bin
NODE_BIN := bindings-node/node_modules/.bin

# How long `make fuzz` spends on each target.
SECONDS ?= 300
# How long `make soak` runs, and on which stores, all at the same time.
MINUTES ?= 10
STORES ?= sqlite postgres redis etcd

# Named for all that is built for release, as `napi` does: cargo shares nothing between builds that
# name the target and builds that do not.
HOST = $(shell rustc --print host-tuple)

# Where what is built is used once, and nothing is measured.
QUICK_BUILD = CARGO_BUILD_TARGET=$(HOST) CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1

# With `-j`, make offers its children job slots that it closes to them: cargo would take for those
# whatever else it finds open.
unexport MAKEFLAGS MFLAGS

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-stores fuzz simulate soak setup fmt vectors clean check-tools \
	python node test-core test-loom test-python test-node test-stores test-cross test-fuzz \
	test-packages test-instructions instructions-bounds test-soak test-readme lint-rust lint-python lint-node lint-scripts lint-platforms

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: check-tools python node ## makes ids in Python and in Node, and has each read the other's
	@scripts/demo

# With `-j2`, what compiles goes on beside what waits. The README tests stay last: they run the
# commands a newcomer would, and pytest's summary closes the log.
test: test-core test-loom test-packages test-python test-fuzz test-node test-stores test-cross test-instructions test-soak test-readme ## runs every test, in all three languages

lint: lint-rust lint-python lint-node lint-scripts lint-platforms ## runs every linter, format check and type check

bench: check-tools python node ## measures Randflake beside its peers; QUICK=1 for a first look
	$(PYTHON_ENV)/python bench/run.py $(if $(QUICK),--quick)

bench-stores: check-tools ## measures what each store bears, and writes docs/stores.md; QUICK=1 for a first look
	QUICK=$(QUICK) cargo test --locked --release --all-features -p randflake-leases --test scale -- --ignored --nocapture

fuzz: check-tools ## fuzzes each target for SECONDS seconds (300 unless set)
	scripts/fuzz $(SECONDS)

simulate: check-tools ## runs SEEDS seeds (100000 unless set) of the simulation of the whole system; SEED=n one, with a trace
	SEEDS=$(SEEDS) SEED=$(SEED) FIRST=$(FIRST) cargo test --locked --quiet -p randflake-leases --lib -- \
		--ignored --exact --nocapture simulation::many_seeds

soak: python node ## runs fleets of holders of leases under faults, on each of STORES, for MINUTES minutes (10 unless set)
	cargo build --locked --release --target $(HOST) --quiet -p randflake-soak
	scripts/soak $(MINUTES) $(STORES)

setup: check-tools target/setup/python target/setup/node ## creates .venv and installs the pinned development tools

fmt: setup ## formats everything
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	cd bench && cargo fmt
	$(PYTHON_ENV)/ruff format .
	$(PYTHON_ENV)/ruff check --fix .
	$(NODE_BIN)/biome check --write .

vectors: check-tools ## rewrites the test vectors
	cargo run --locked --quiet --manifest-path tests/generate/Cargo.toml

clean: ## removes everything that was built or installed
	rm -rf target .venv bindings-node/node_modules bindings-node/*.node bench/node/node_modules

# --- set-up -----------------------------------------------------------------

# Asked for by name, `lint` and `test` need a little more than `demo`.
check-tools:
	@scripts/check-tools $(if $(filter lint%,$(MAKECMDGOALS)),lint,$(if $(filter test%,$(MAKECMDGOALS)),test))

.venv/pyvenv.cfg: | check-tools
	python=$$(scripts/check-tools --python) && "$$python" -m venv --clear .venv

target/setup/python: requirements-dev.txt .venv/pyvenv.cfg | check-tools
	$(PYTHON_ENV)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@mkdir -p $(@D) && touch $@

target/setup/node: bindings-node/package.json bindings-node/package-lock.json | check-tools
	cd bindings-node && npm ci --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# Made anew when node_modules was removed, or when .venv's Python was.
ifeq ($(wildcard bindings-node/node_modules/.package-lock.json),)
.PHONY: target/setup/node
endif
ifneq ($(shell $(PYTHON_ENV)/python -c 'print(1)' 2>/dev/null),1)
.PHONY: .venv/pyvenv.cfg
endif

# --- packages ---------------------------------------------------------------

# The wheel is installed as a user would, so the tests see what is shipped.
python: target/setup/python ## builds the Python package and installs it into .venv
	rm -rf target/dist/python
	$(PYTHON_ENV)/maturin build --locked --release --target $(HOST) --quiet \
		--interpreter $(PYTHON_ENV)/python --manifest-path bindings-python/Cargo.toml --out target/dist/python
	$(PYTHON_ENV)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--force-reinstall target/dist/python/*.whl

node: target/setup/node ## builds the Node package in bindings-node
	cd bindings-node && npm run build

# --- tests ------------------------------------------------------------------

test-core: check-tools ## the core, its examples, and the freshness of the vectors
	cargo test --locked --all-features

test-loom: check-tools ## the core under every interleaving of its threads, and mutants that it must catch
	scripts/loom-mutants

test-python: python ## the Python package
	$(PYTHON_ENV)/python -m pytest bindings-python/tests

test-node: node ## the Node package
	cd bindings-node && node --test $$(find test -name '*.test.*js' | sort)

test-stores: python node ## the conformance tests of stores with a server, through the clients of Python and of Node
	cargo test --locked --all-features --test remote languages -- --ignored

test-cross: python node ## ids made in each language, read in the others, and the command of all three
	$(PYTHON_ENV)/python -m pytest tests/cross_language

test-fuzz: check-tools ## each fuzz target, for a quarter of a minute
	scripts/fuzz 15

test-packages: python node ## the wheel, the sdist and the npm packages, installed where there is nothing
	$(QUICK_BUILD) $(PYTHON_ENV)/python -m pytest tests/packages

test-instructions: target/setup/python ## that an id takes no more instructions than before (needs valgrind)
	$(PYTHON_ENV)/python -m pytest -rs tests/instructions

instructions-bounds: target/setup/python ## records how many instructions an id takes
	$(PYTHON_ENV)/python tests/instructions/test_instructions.py

test-soak: MINUTES = 2
test-soak: soak ## two minutes of the soak, and that it would find what it looks for
	$(PYTHON_ENV)/python -m pytest tests/soak

test-readme: python node ## every code block of every README, and rules about the repository
	$(QUICK_BUILD) $(PYTHON_ENV)/python -m pytest tests/readme

# --- linters ----------------------------------------------------------------

lint-rust: check-tools ## clippy, rustfmt and rustdoc
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	RUSTFLAGS='--cfg loom' cargo clippy --locked -p randflake --target-dir target/loom --lib --profile test -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cd bench && cargo fmt --check
	CUSTOM_LIBFUZZER_PATH=not/linked.a cargo clippy --locked --manifest-path fuzz/Cargo.toml \
		--target-dir target -- -D warnings
	PYO3_BUILD_EXTENSION_MODULE=1 cargo clippy --locked --manifest-path bench/Cargo.toml \
		--target-dir target -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace --all-features

lint-python: python ## ruff, mypy, and the stubs against the binary
	$(PYTHON_ENV)/ruff format --check .
	$(PYTHON_ENV)/ruff check .
	$(PYTHON_ENV)/mypy
	$(PYTHON_ENV)/python -m mypy.stubtest randflake

lint-node: node ## biome, tsc, and the declared exports
	$(NODE_BIN)/biome ci --error-on-warnings .
	cd bindings-node && npm run typecheck

lint-platforms: check-tools ## that all compiles with the oldest Rust, on other platforms, and beside other users of SQLite
	scripts/check-platforms

lint-scripts: target/setup/python ## shellcheck, and the GitHub workflows against their schema
	$(PYTHON_ENV)/shellcheck .ci/run scripts/check-tools scripts/demo scripts/fuzz scripts/soak
	$(PYTHON_ENV)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
