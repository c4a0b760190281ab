# SPDX-License-Identifier: Apache-2.0
# Benchmarks: what a sample costs in the guest's kernel, and what it costs in user space here.

BENCH_ARCHES ?= x86_64 arm64
B := $(O)/bench-$(ARCH)
bench_session_sources := $(addprefix tests/bench/,bench_session.c sampler_perf.c sampler_stacktap.c \
	sampler_tables.c)
bench_host := $(patsubst tests/bench/%.c,$(O)/bench/%,\
	$(filter-out tests/bench/bench_session.c,$(wildcard tests/bench/bench_*.c)))

.PHONY: bench bench-guest bench-host
bench: ## costs beside a peer's, as a table and build/bench.json
	$(Q)for arch in $(BENCH_ARCHES); do \
		$(MAKE) ARCH=$$arch lab && $(MAKE) ARCH=$$arch bench-guest && \
		$(MAKE) ARCH=$$arch STACKTAP_TEST=1 bench-noop || exit; done
	$(Q)$(MAKE) ARCH=$(HOST_ARCH) bench-host
	$(Q)tests/bench/run --output $(O) $(BENCH_ARCHES)

.PHONY: bench-page
bench-page: ## the page alone: what opening it and each frame of zooming, hovering, scrolling, searching cost in a headless Chromium
	$(Q)$(MAKE) ARCH=$(HOST_ARCH) user
	$(Q)tests/bench/run --output $(O) --page

.PHONY: bench-bytes
bench-bytes: $(if $(PEER),bench-bytes-guest) ## bytes per sample beside the OpenTelemetry eBPF profiler: PEER=PROGRAM in a guest, or its encoding: RECORDINGS="FILE..."
	$(Q)$(if $(PEER),tests/bench/bytes_beside --output "$(O)" "$(PEER)",tests/bench/peer_encoding $(RECORDINGS))

.PHONY: bench-bytes-guest
bench-bytes-guest:
	$(Q)$(MAKE) ARCH=x86_64 lab && $(MAKE) ARCH=x86_64 bench-guest

.PHONY: bench-own
bench-own: ## stacktapd's own profile under load, by stacktap: the table of docs/operating.md
	$(Q)$(MAKE) ARCH=x86_64 lab && $(MAKE) ARCH=x86_64 bench-guest && $(MAKE) ARCH=$(HOST_ARCH) user
	$(Q)tests/bench/own_profile $(O)

bench-guest: $(B)/workload_depth $(B)/workload_depth_nofp $(B)/workload_fork $(B)/bench_session $(K)/stacktap.ko $(user_programs)
	$(Q)cp -u $(K)/stacktap.ko $(user_programs) $(B)/

# the same module, but with a handler that can be told to do nothing
.PHONY: bench-noop
bench-noop: $(K)/stacktap.ko
	$(Q)mkdir -p $(B)/noop && cp -u $(K)/stacktap.ko $(B)/noop/

bench-host: $(bench_host) $(U)/stacktap

$(B)/workload_depth: tests/bench/workload_depth.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -o $@ $<

$(B)/workload_depth_nofp: tests/bench/workload_depth.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -fomit-frame-pointer \
		-momit-leaf-frame-pointer -DWITHOUT_FRAME_POINTERS -o $@ $<

# its address space is copied 20,000 times
$(B)/workload_fork: tests/bench/workload_fork.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -static -o $@ $<

$(B)/bench_session: $(bench_session_sources) tests/bench/sampler.h $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -Itests/bench $(user_ldflags) -o $@ \
		$(bench_session_sources) $(U)/libstacktap.a $(user_libs)

bench_host_load := $(addprefix $(U)/tests/unit/,host.o load.o records.o)
$(O)/bench/bench_replay: tests/bench/bench_replay.c $(bench_host_load) $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -Itests/unit $(user_ldflags) -o $@ $< $(bench_host_load) \
		$(U)/libstacktap.a $(user_libs) -lm

$(O)/bench/%: tests/bench/%.c $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -Itests/bench $(user_ldflags) -o $@ $< \
		$(U)/libstacktap.a $(user_libs) -lm
