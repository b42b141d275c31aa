# The README's two commands are `make demo` and `make test`; each installs what it lacks and says so.
.PHONY: help demo test test-mem test-faults fuzz interop peers perf-smoke bench-gate tidy setup testbed test-bypass perf-bypass
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(CURDIR)/target

help: ## Show these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: ## Telemetry of this machine, published and shown for 15 s (DEMO_SECONDS=n)
	@scripts/check-rust.sh
	@scripts/setup.sh demo
	cargo build --release --package taut-cli
	@interop/build.sh --installed
	$(CARGO_TARGET_DIR)/release/taut demo

test: ## All tests; without root those that need none
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/test.sh

test-mem: ## What threads and processes share, under loom and the sanitizers
	@scripts/check-rust.sh
	@scripts/test-mem.sh

test-faults: ## Processes that share memory are killed, stopped, scrambled: hours (FAULT_ROUNDS=n)
	@scripts/check-rust.sh
	@scripts/test-faults.sh --full

fuzz: ## Bytes that a parser or a matched pair cannot take, looked for by coverage: ten minutes (FUZZ_SECONDS=n each)
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/fuzz.sh $${FUZZ_SECONDS:-85}

interop: ## The matrix against other implementations only
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/test.sh release interop-build interop interop-ipv6 interop-move interop-critical

testbed: ## Two namespaces with a cable, for what goes past the kernel (scripts/testbed.sh down)
	@scripts/setup.sh test
	@scripts/testbed.sh up

test-bypass: ## All tests of what goes past the kernel, as root
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/testbed.sh check
	@CI=true scripts/test.sh bypass dpdk release testbed interop-build interop-xdp interop-dpdk

perf-bypass: ## Past the kernel beside through it, with Cyclone DDS and Fast DDS: some ten minutes
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/testbed.sh check
	@peers/build.sh --installed cyclonedds fastdds
	cargo build --release --package taut-cli
	cargo build --release --package taut-perf-peer-taut --package taut-perf-peer-floor \
		$$(pkg-config --exists libdpdk && echo --features dpdk)
	$(CARGO_TARGET_DIR)/release/taut perf bypass --budget 480 --save $(CARGO_TARGET_DIR)/bypass.jsonl
	$(CARGO_TARGET_DIR)/release/taut perf report $(CARGO_TARGET_DIR)/bypass.jsonl --out $(CARGO_TARGET_DIR)/bypass.html
	@scripts/measured.sh $(CARGO_TARGET_DIR)/bypass.jsonl "taut floor" "udp xdp xdp-l2 dpdk"

bench-gate: ## Instructions of the hot paths against their baselines
	@scripts/check-rust.sh
	@scripts/setup.sh test
	@scripts/test.sh bench-gate

peers: ## taut perf and all adapters: Taut, the floor, other middlewares
	@scripts/check-rust.sh
	cargo build --release --package taut-cli --package taut-perf-peer-taut --package taut-perf-peer-floor
	@peers/build.sh

perf-smoke: ## A little of every workload of taut perf, in under five minutes
	@scripts/check-rust.sh
	@scripts/setup.sh test
	cargo build --release --package taut-cli --package taut-perf-peer-taut --package taut-perf-peer-floor
	@scripts/perf-smoke.sh

tidy: ## Floors, purity, sizes: the style as a check
	@scripts/check-rust.sh
	cargo xtask tidy

setup: ## Install what the tests need
	@scripts/check-rust.sh
	@scripts/setup.sh test
