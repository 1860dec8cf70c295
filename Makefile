# Slackline from the outside: each target sets up what it needs, then runs.
#
#   make demo    the main job on an emulated disk in real time, under 3 minutes
#   make test    formatting, lints, all tests, the rules of the house, docs
#   make wheel   the package for Python: built by maturin, installed, tested as it is then
#   make bench   decisions, simulated requests, transfers beside fio, reads beside memcpy
#   make rwrt    figure 14 of the ABISS paper in real time, 25 minutes: out/rwrt.html
#   make lab     the experiments of the papers: out/lab/index.html, half an hour
#   make soak    the searches and the crash tests, many times larger
#   make fmt     format the sources
#   make clean   remove what was built
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: demo test wheel bench rwrt lab soak fmt clean

# One target directory and one profile, so that tests, lints and docs share
# what they can. DEMO_ARGS, for example: make demo DEMO_ARGS="--json"
DEMO_ARGS ?= --svg out/demo.svg

demo:
	@scripts/setup demo
	cargo build --release --bin slackline
	@mkdir -p out
	target/release/slackline demo $(DEMO_ARGS)

test:
	@scripts/setup test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace
	cargo run -q -p xtask -- tidy
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --document-private-items
	@echo "make test: formatting, lints, tests, tidy (arrows, purity, licences, links) and docs: all passed"

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
		cargo test -p slackline --test clients -- python
	@echo "make wheel: tested as installed: $$(ls $(WHEEL)/*.whl)"

bench:
	@scripts/setup bench
	cargo bench -p slackline-sched --bench decisions
	cargo bench -p slackline-sched --bench policies
	cargo bench -p slackline-sim --bench requests
	cargo bench -p slackline-engine --bench beside_fio
	cargo bench -p slackline --bench windows

# RWRT_ARGS, for example: make rwrt RWRT_ARGS="--total 20MB"
rwrt:
	@scripts/setup build
	cargo build --release --bin slackline
	@mkdir -p out
	target/release/slackline rwrt --scene abiss --svg out/rwrt.svg --report out/rwrt.html $(RWRT_ARGS)

# Root, FUSE and loop devices are needed for the part that runs beside the kernel's
# schedulers; without them the report says that it was not run.
lab:
	@scripts/setup lab
	cargo build --release --bin slackline
	target/release/slackline lab run all --report out/lab

# SETS: task sets searched exhaustively. HISTORIES: random histories whose power
# is cut at every write. KILLS: recordings ended by kill -9. REQUESTS: how many each
# load of the statistical admission serves. MINUTES: how long each sweep runs. LARGE:
# requests in random large worlds. SECONDS: simulated in each cell of the table of
# best effort. TRACES: random accesses through windows, held against what is promised.
# PREEMPTIONS: in the orders in which the two ends of a window are tried.
soak:
	@scripts/setup test
	SLACKLINE_LARGE=100000000 cargo test --release -p slackline-sched \
		--test large_worlds -- --nocapture
	SLACKLINE_SECONDS=3000 cargo test --release -p slackline-sim \
		--test best_effort_table -- --nocapture
	SLACKLINE_SETS=50000 SLACKLINE_HISTORIES=5000 SLACKLINE_KILLS=50 \
		SLACKLINE_REQUESTS=20000000 SLACKLINE_MINUTES=1000 SLACKLINE_TRACES=1000000 \
		SLACKLINE_PREEMPTIONS=5 \
		cargo test --release --workspace

fmt:
	cargo fmt --all

clean:
	cargo clean
	rm -rf out
