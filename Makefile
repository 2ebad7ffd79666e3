# Two commands set everything up: `make demo` and `make test`. The work is done by the scripts in
# make/, which any POSIX shell runs.

.POSIX:
.PHONY: help demo test soak bench

help:
	@echo 'make demo    build dovetail and watch it schedule a month of a real-size GPU cluster'
	@echo 'make test    everything that is tested, from formatting to the slowest test'
	@echo 'make soak    searches on with fresh seeds for SOAK_MINUTES (60), and keeps what fails'
	@echo 'make bench   the figures of docs/benchmarks.md'

demo:
	@sh make/demo.sh

test:
	@sh make/test.sh

soak:
	@sh make/soak.sh

bench:
	@sh make/bench.sh
