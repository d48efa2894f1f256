# Delegates to cargo, cmake, ctest and scripts/. Nothing outside this folder changes without a line that says so first.
PREFIX ?= $(CURDIR)/build/prefix
# How many jobs run at once, in all that is built and tested: make JOBS=1 test. Without it each tool follows its own
# rule.
JOBS ?=
export JOBS

.PHONY: help demo build docs test test-all gpu verify soak bench interop wheel loom format install package clean
help: ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18
	@echo; echo 'make JOBS=n ...   n jobs at once, in all that is built and tested (default: as many as there are cores)'

demo: ## train a classifier on handwritten digits over four devices, from C++
	@scripts/demo

build: ## libpurlin.a, libpurlin.so, examples and tests, in build/release
	@scripts/build

docs: ## all pages, the C++ and the Rust reference as web pages, in build/docs (brings Doxygen on first use)
	@scripts/document

test: ## what a change is tried with: checks, Rust and C++ tests, examples, packages (minutes)
	@scripts/test

test-all: ## every test: make test, models, defects, fail points, clang, sanitizers, linters, Bazel, interop
	@scripts/test --all

gpu: ## the tests of CUDA on this machine's GPUs; `gpu: skipped: why` where there is none
	@scripts/gpu

verify: ## the whole proof of what is concurrent: models, planted defects, the reference model, fail points, sanitizers (three hours and more; scripts/verify --go-on after a run that was cut off)
	@scripts/verify

soak: ## work of every kind for SOAK_MINUTES (30); memory may not grow; build/soak.png
	@scripts/soak

bench: ## what operations cost, beside their peers (brings peers on first use; a minute after that)
	@scripts/bench $(BENCH)

interop: ## the adapters beside real TensorFlow, XLA, JAX and abseil (brings about 500 MB from PyPI on first use)
	@scripts/interop

wheel: ## the wheel purlin_jax, in build/wheel: JAX on Purlin (brings auditwheel on first use; minutes)
	@scripts/wheel

loom: ## explore the interleavings of the lock-free code
	@scripts/loom

format: ## format Rust and C++
	@scripts/format

install: ## build the library, without the tests, and install it into PREFIX (default: build/prefix)
	@scripts/build purlin_static purlin_shared && cmake=$$(scripts/tools cmake) && "$$cmake" --install build/release --prefix "$(PREFIX)"

package: ## the same as a tar and a Debian package, in build/release (docs/packages.md)
	@scripts/build purlin_static purlin_shared && cmake=$$(scripts/tools cmake) && cd build/release && "$$(dirname "$$cmake")/cpack"

clean: ## remove build/ (tools stay in .tools/)
	rm -rf build
