# Slackline from the outside: each target sets up what it needs, then runs.
#
#   make demo    the main job on an emulated disk in real time, under 3 minutes
#   make test    formatting, lints, all tests, the rules of the house, docs, and `make short`
#   make short   every other target, as short as it can be: does it run at all?
#   make install the command, its libraries, man pages, completions and unit, below PREFIX
#   make uninstall  removes them again; settings, keys and pools stay
#   make deb     the same as a package for this Debian: target/slackline_VERSION_ARCH.deb
#   make package-test  that package in a clean Debian: installed, used, upgraded, purged
#   make wheel   the package for Python: built by maturin, installed, tested as it is then
#   make bench   decisions, simulated requests, transfers beside fio, reads beside memcpy,
#                the cache beside the kernel's,
#                answers under contract beside greedy programs, block devices beside nbdkit,
#                HTTP beside nginx, the mount beside a pass-through,
#                reading the metrics of 1,000 streams;
#                with SLACKLINE_QUICK=1 in seconds, to see that all of it runs
#   make rwrt    figure 14 of the ABISS paper in real time, 25 minutes: out/rwrt.html
#   make lab     the experiments of the papers: out/lab/index.html, half an hour
#   make soak    the searches and the crash tests, many times larger
#   make mutants what no test finds: hours; MUTANTS="window --shard 0/10" is a part
#   make planted a bug in each file of node, queue and playout, and the test of the same crate that
#                finds it: 20 minutes; PLANTED="playout/src" is a part
#   make fmt     format the sources
#   make clean   remove what was built
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: demo test checks short install uninstall deb package-test wheel bench rwrt lab soak mutants planted fmt clean

# One target directory and one profile, so that tests, lints and docs share
# what they can. PROFILE: how cargo builds what the targets below run; `dev` is what
# `make test` has built already, and no figure of it means anything.
PROFILE ?= release
SLACKLINE := target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/slackline
# All that the tests need, libraries for other languages among it. With some packages alone much would be built
# again, with other features of what they need: `dev` builds this, whatever of it is asked for.
BUILD_ALL := cargo build --workspace --lib --bins --tests --examples
BUILD := $(if $(filter dev,$(PROFILE)),$(BUILD_ALL),cargo build --profile $(PROFILE) --bin slackline)

# DEMO_ARGS, for example: make demo DEMO_ARGS="--json"
DEMO_ARGS ?= --svg out/demo.svg

demo:
	@scripts/setup demo
	$(BUILD)
	@mkdir -p out
	$(SLACKLINE) demo $(DEMO_ARGS)

# Tests wait for much of their time: lints and documents are made and the short runs are run beside
# them, once all tests are built.
BESIDE := target/beside-tests.log
# What each test says that cannot run on this machine: it has passed for its harness, and not here.
NOT_RUN := $(CURDIR)/target/not-run
LIST_NOT_RUN := sort -u $(NOT_RUN) | sed 's/^/test: NOT RUN: /'
# Where scripts/setup puts what no package has.
TOOLS := $(CURDIR)/target/tools/bin
test:
	@scripts/setup test
	cargo fmt --all --check
	$(BUILD_ALL)
	cargo run -q -p xtask -- tidy
	@echo "lints, rustdoc and the short runs go beside the tests; what they say is in $(BESIDE)"
	@export PATH="$(TOOLS):$$PATH"; \
	: >$(NOT_RUN); \
	{ $(MAKE) --no-print-directory checks && scripts/short-runs; } >$(BESIDE) 2>&1 & beside=$$!; \
		SLACKLINE_NOT_RUN=$(NOT_RUN) SLACKLINE_BUILT=1 cargo test --workspace --no-fail-fast && tests=0 || tests=$$?; \
		wait $$beside || { cat $(BESIDE); echo "beside the tests: failed" >&2; exit 1; }; \
		grep '^short: ' $(BESIDE); $(LIST_NOT_RUN); exit $$tests
	@echo "make test: formatting, lints, tests, tidy (arrows, circles, purity, licences, links), docs and" \
		"short runs of every target: passed, but $$(sort -u $(NOT_RUN) | wc -l) tests (or parts of them)" \
		"and $$(grep -c '^short: NOT RUN' $(BESIDE)) short runs were NOT RUN"

# Part of `make test`.
checks:
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --document-private-items

short:
	@scripts/setup short
	scripts/short-runs

BUILT := $(patsubst %/,%,$(dir $(SLACKLINE)))
BUILD_PACKAGED := $(if $(filter dev,$(PROFILE)),$(BUILD_ALL),\
	cargo build --profile $(PROFILE) -p slackline -p slackline-capi -p slackline-preload)

# Built as whoever calls it, installed as root; DESTDIR=/some/where packs it instead.
PREFIX ?= /usr/local
install:
	@scripts/setup build
	$(BUILD_PACKAGED)
	$(if $(DESTDIR),,$(if $(filter 0,$(shell id -u)),,sudo)) \
		scripts/install $(PREFIX) $(BUILT)

# What install has laid down with the same PREFIX.
uninstall:
	$(BUILD_PACKAGED)
	$(if $(DESTDIR),,$(if $(filter 0,$(shell id -u)),,sudo)) \
		scripts/uninstall $(PREFIX) $(BUILT)

# scripts/package says what is in it. package-test needs root and a mirror of Debian, once.
deb:
	@scripts/setup deb
	$(BUILD_PACKAGED)
	scripts/package $(BUILT)

package-test:
	@scripts/setup package-test
	$(BUILD_PACKAGED)
	scripts/package-test $(BUILT)

# Python's own index is asked for maturin and NumPy. WHEEL_PYTHON: any Python from 3.11 on,
# for example: make wheel WHEEL_PYTHON=python3.13. WHEEL_ARGS="--release" is what a wheel
# for others is built with.
WHEEL_PYTHON ?= /usr/bin/python3
WHEEL_ARGS ?=
WHEEL := target/wheel
wheel:
	@scripts/setup wheel
	rm -rf $(WHEEL)
	$(WHEEL_PYTHON) -m venv $(WHEEL)/building
	$(WHEEL)/building/bin/pip install --quiet "maturin>=1.9.4,<2"
	$(WHEEL)/building/bin/maturin build $(WHEEL_ARGS) -m crates/python/Cargo.toml --out $(WHEEL)
	$(WHEEL_PYTHON) -m venv $(WHEEL)/using
	$(WHEEL)/using/bin/pip install --quiet numpy $(WHEEL)/slackline-*-cp311-abi3-*.whl
	SLACKLINE_PYTHON=$(CURDIR)/$(WHEEL)/using/bin/python \
		cargo test --workspace --test clients -- python
	@echo "make wheel: tested as installed: $$(ls $(WHEEL)/*.whl)"

# `requests` are two: what the models serve, and what the simulator simulates.
BENCHES ?= decisions policies requests pool ends beside_fio page_cache windows answers \
	scrapes block_devices http_bodies mounted_files
# For example --no-run, to build them alone.
BENCH_ARGS ?=
bench:
	@scripts/setup bench
	cargo bench --profile $(if $(filter release,$(PROFILE)),bench,$(PROFILE)) --workspace \
		$(BENCHES:%=--bench %) $(BENCH_ARGS)

# RWRT_ARGS, for example: make rwrt RWRT_ARGS="--total 20MB"
RWRT_SCENE ?= abiss
RWRT_OUT ?= out/rwrt
rwrt:
	@scripts/setup build
	$(BUILD)
	@mkdir -p $(dir $(RWRT_OUT))
	$(SLACKLINE) rwrt --scene $(RWRT_SCENE) --svg $(RWRT_OUT).svg --report $(RWRT_OUT).html \
		$(RWRT_ARGS)

# Root, FUSE and loop devices are needed for the part that runs beside the kernel's
# schedulers; without them the report says that it was not run.
# LAB_ARGS, for example: make lab LAB_ARGS="--quick all"
LAB_ARGS ?= all
LAB_OUT ?= out/lab
lab:
	@scripts/setup lab
	$(BUILD)
	$(SLACKLINE) lab run $(LAB_ARGS) --report $(LAB_OUT)

# SETS: task sets searched exhaustively. HISTORIES: random histories whose power
# is cut at every write. KILLS: recordings ended by kill -9. REQUESTS: how many each
# load of the statistical admission serves. ODDS_REQUESTS: the same at odds beside contracts by
# bounds. MINUTES: how long each sweep runs. LARGE:
# requests in random large worlds. SECONDS_EACH: simulated in each cell of the table of
# best effort. TRACES: random accesses through windows, held against what is promised.
# PREEMPTIONS: in the orders in which the two ends of a window are tried. SCHEDULES: of
# the threads of a pool. DAEMON_HISTORIES: lives of a daemon with programs beside each
# other. INPUTS: which libFuzzer makes for each surface of crates/fuzz (0: none), slow
# ones a hundredth of that.
# BUSES: random machines of disks that share buses. CHUNKS: random pools whose requests
# are served in chunks. GAPS: random schedules of which the host delays every command.
# MIXED: random schedules of requests in chunks beside others in parts.
# FSX: operations of fsx on two files of a mount at once, and as many on ext4 on a volume.
# CUTS: of the power, under each filesystem on a volume.
# SERVED: simulated minutes for which each set in the tables of long blocks and of writers together is served.
# JUMPS: in each row of the table of first bytes. CACHES: random histories of memory that is cached and asked for.
# CAMERA_SECONDS: ten cameras whose daemon and supervisor are killed in turn.
# Any of them can be given: make soak SETS=100000. SOAK_TESTS: which of the tests at last.
SETS ?= 50000
HISTORIES ?= 5000
KILLS ?= 50
REQUESTS ?= 20000000
ODDS_REQUESTS ?= 100000000
MINUTES ?= 1000
LARGE ?= 100000000
SECONDS_EACH ?= 3000
TRACES ?= 1000000
PREEMPTIONS ?= 5
SCHEDULES ?= 20000
DAEMON_HISTORIES ?= 1000
LOADS ?= 1000000
CHUNKS ?= 2000
GAPS ?= 1000000
MIXED ?= 1000000
BUSES ?= 10000
CYCLES ?= 1000000
INPUTS ?= 100000000
CAMERA_SECONDS ?= 600
CUTS ?= 100
SERVED ?= 200
JUMPS ?= 2000
CACHES ?= 100000
FSX ?= 1000000
SOAK_TESTS ?=
SOAK := cargo test $(if $(filter dev,$(PROFILE)),,--profile $(PROFILE)) --workspace
soak:
	@scripts/setup test
	@: >$(NOT_RUN)-soak
	SLACKLINE_LARGE=$(LARGE) $(SOAK) \
		--test large_worlds -- --nocapture
	SLACKLINE_SECONDS=$(SECONDS_EACH) $(SOAK) \
		--test best_effort_table -- --nocapture
	SLACKLINE_SETS=$(SETS) SLACKLINE_HISTORIES=$(HISTORIES) SLACKLINE_KILLS=$(KILLS) \
		SLACKLINE_REQUESTS=$(REQUESTS) SLACKLINE_ODDS_REQUESTS=$(ODDS_REQUESTS) \
		SLACKLINE_MINUTES=$(MINUTES) \
		SLACKLINE_TRACES=$(TRACES) SLACKLINE_PREEMPTIONS=$(PREEMPTIONS) \
		SLACKLINE_SCHEDULES=$(SCHEDULES) SLACKLINE_LOADS=$(LOADS) \
		SLACKLINE_CHUNKS=$(CHUNKS) SLACKLINE_GAPS=$(GAPS) SLACKLINE_MIXED=$(MIXED) \
		SLACKLINE_BUSES=$(BUSES) SLACKLINE_CYCLES=$(CYCLES) \
		SLACKLINE_DAEMON_HISTORIES=$(DAEMON_HISTORIES) \
		SLACKLINE_CAMERA_SECONDS=$(CAMERA_SECONDS) SLACKLINE_CUTS=$(CUTS) \
		SLACKLINE_LONG_BLOCKS=$(SERVED) SLACKLINE_GROUPS=$(SERVED) \
		SLACKLINE_FIRST_BYTES=$(JUMPS) SLACKLINE_CACHES=$(CACHES) \
		SLACKLINE_FSX=$(FSX) PATH="$(TOOLS):$$PATH" SLACKLINE_NOT_RUN=$(NOT_RUN)-soak \
		$(SOAK) $(SOAK_TESTS)
	@$(subst $(NOT_RUN),$(NOT_RUN)-soak,$(LIST_NOT_RUN))
	$(if $(filter 0,$(INPUTS)),,scripts/fuzz build all && scripts/fuzz run all $(INPUTS))

# One thing in the sources is changed at a time, and some test has to fail for it;
# docs/mutants.md explains those that may survive. MUTANTS: a crate, and what cargo-mutants
# shall be told besides.
MUTANTS ?=
mutants:
	@scripts/setup test
	@command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
ifeq ($(MUTANTS),)
	for crate in window store node engine; do cargo run -q -p xtask -- mutate $$crate; done
else
	cargo run -q -p xtask -- mutate $(MUTANTS)
endif

# docs/planted-bugs.tsv has the bugs. PLANTED: in which files, by parts of their names.
PLANTED ?=
planted:
	@scripts/setup build
	cargo run -q -p xtask -- planted $(PLANTED)

fmt:
	cargo fmt --all

clean:
	cargo clean
	rm -rf out
