# Two commands set everything up: `make demo` and `make test`. The work is done by the scripts in
# make/, which any POSIX shell runs.

.POSIX:
.PHONY: help demo test bench

help:
	@echo 'make demo    build dovetail and watch it schedule a month of a real-size GPU cluster'
	@echo 'make test    everything that is tested, from formatting to the slowest test'
	@echo 'make bench   the figures of docs/benchmarks.md'

demo:
	@sh make/demo.sh

test:
	@sh make/test.sh

bench:
	@sh make/bench.sh
