# SPDX-License-Identifier: Apache-2.0
# Tests: unit (ASan, UBSan), oracle and VM lanes; the demo; the Collector lane.

# --- unit: one cmocka program per tests/unit/test_*.c
unit_sources := $(wildcard tests/unit/test_*.c)
unit_helpers := $(filter-out $(unit_sources),$(wildcard tests/unit/*.c))
unit_programs := $(patsubst tests/unit/%.c,$(O)/unit/%,$(unit_sources))
unit_objects := $(patsubst %.c,$(U)/%.o,$(unit_helpers))
unit_cflags = $(user_cflags) -Wno-missing-prototypes -Itests/unit

.PHONY: unit unit-build
unit: ## unit tests under ASan and UBSan
	$(Q)$(MAKE) SAN=1 ARCH=$(HOST_ARCH) unit-build
	$(Q)tests/unit/run $(if $(RETRY),--retry) $(O)/unit

unit-build: $(unit_programs)

$(O)/unit/%: tests/unit/%.c $(unit_objects) $(U)/libstacktap.a
	$(say) TEST $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(unit_cflags) -MMD -MP -MF $@.d $(user_ldflags) -o $@ $< $(unit_objects) \
		$(U)/libstacktap.a $(user_libs) -lcmocka -lm

$(unit_objects): $(U)/tests/unit/%.o: tests/unit/%.c $(wildcard tests/unit/*.h) $(user_generated)
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(unit_cflags) -MMD -MP -c -o $@ $<

# some include what they test, be it in the library or not
-include $(unit_objects:.o=.d) $(unit_programs:=.d)

# the programs that have more than one thread
tsan_programs := $(addprefix $(O)/tsan/unit/,test_threads test_queue test_fetched test_indices test_exporter test_ring_properties \
	test_ring_threads)

.PHONY: tsan
tsan: ## unit tests of what threads share, under ThreadSanitizer
	$(Q)$(MAKE) ARCH=$(HOST_ARCH) O=$(O)/tsan CFLAGS="-g1 -fsanitize=thread" LDFLAGS=-fsanitize=thread \
		$(tsan_programs)
	$(Q)tests/unit/run $(if $(RETRY),--retry) $(O)/tsan/unit

.PHONY: litmus
litmus: ## the ring's order in the kernel's memory model (herd7, HERD7=)
	$(Q)tests/run "$(O)" "$(MAKE)" litmus

# --- what a guest gets: programs, module, workloads
S := $(O)/stage-$(ARCH)$(if $(KERNEL),-$(KERNEL))
workload_cflags := -O1 -g -Wall -Wextra -Werror -D_GNU_SOURCE -pthread -fno-omit-frame-pointer \
	-mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls -Iinclude/uapi -Iinclude
signed_arm64 := $(addprefix $(S)/workload/pac/,deep zero_reader no_frame_pointers)
workloads := $(patsubst tests/vm/workload/%.c,$(S)/workload/%,\
	$(filter-out %/plugin.c %/seven.c,$(wildcard tests/vm/workload/*.c))) \
	$(addprefix $(S)/workload/,static/known_split split/lined split/moved split/apart plugin.so deep_frameless hooks_frameless deep_static deep_plain deep_other deep_linked) \
	$(addprefix $(S)/workload/musl/,libc.so static dynamic pointers) \
	$(signed_$(ARCH))

.PHONY: stage
stage: $(workloads) $(user_programs) packaging/soak $(K)/stacktap.ko $(K)-abi99/stacktap.ko $(K)-abi1.3/stacktap.ko
	$(Q)mkdir -p $(S)/bin && cp -u $(user_programs) $(S)/bin/ && cp -u $(K)/stacktap.ko $(S)/ && \
		cp -u packaging/soak $(S)/bin/stacktap-soak && \
		cp -u $(K)-abi99/stacktap.ko $(S)/stacktap-abi99.ko && \
		cp -u $(K)-abi1.3/stacktap.ko $(S)/stacktap-abi1.3.ko

ifneq ($(filter stacks,$(LANE)),)
stage: $(S)/stacktap-patient.ko
endif

ifeq ($(ARCH),arm64)
stage: $(S)/test/stacktap_refuse.ko
else
stage: $(S)/stacktap-strict.ko
endif

$(S)/test/stacktap_refuse.ko: $(K)-refuse/stacktap_refuse.ko
	$(Q)mkdir -p $(@D) && cp $< $@

$(S)/stacktap-%.ko: $(K)-%/stacktap.ko
	$(Q)mkdir -p $(S) && cp $< $@

$(S)/workload/%: tests/vm/workload/%.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -o $@ $< -lm -ldl

$(S)/workload/%: $(wildcard tests/vm/workload/*.h)

# as Fedora and Ubuntu build all of arm64
$(signed_arm64): workload_cflags += -mbranch-protection=standard
$(S)/workload/pac/%: tests/vm/workload/%.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -o $@ $<

# no C library, see there
$(S)/workload/short_lived: workload_cflags += -static -nostdlib -fno-stack-protector -Wl,--build-id=sha1

# what unwind tables are for
$(addprefix $(S)/workload/,no_frame_pointers pac/no_frame_pointers deep_frameless hooks_frameless functions): \
	workload_cflags += -O2 -fomit-frame-pointer -momit-leaf-frame-pointer

$(S)/workload/%_frameless: tests/vm/workload/%.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -o $@ $<

$(S)/workload/sparse: workload_cflags += -no-pie -Wl,--section-start=.far=0x70000000

# as a container's only file: with a build-id, without one, and another program that looks like the second
static_deep := $(addprefix $(S)/workload/,deep_static deep_plain deep_other)
$(static_deep): workload_cflags += -O2 -fomit-frame-pointer -momit-leaf-frame-pointer -static
$(S)/workload/deep_static: workload_cflags += -Wl,--build-id=sha1
$(S)/workload/deep_plain: workload_cflags += -Wl,--build-id=none
$(S)/workload/deep_other: workload_cflags += -Wl,--build-id=none -Dbottom=wrong -Ddescend=wrong_too
$(static_deep): tests/vm/workload/deep.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -o $@ $<

# whose stacks are named from end to end: Debian's C library has no symbol for what calls main
$(S)/workload/static/known_split: tests/vm/workload/known_split.c
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -static -Wl,--build-id=sha1 -o $@ $<

# split DWARF, whose .dwo file the compiler puts beside the object; alone in a root of its own as well
$(S)/workload/split/lined: tests/vm/workload/lined.c tests/vm/workload/burn.h
	$(say) CC $@
	$(Q)mkdir -p $(@D) && CCACHE_DISABLE=1 $(user_cc) $(workload_cflags) -O2 -gdwarf-5 -gsplit-dwarf -c -o $@.o $< && \
		$(user_cc) -static -Wl,--build-id=sha1 -o $@ $@.o

# what it shares with another one is in a third file
$(S)/workload/split/moved: tests/vm/workload/lined.c tests/vm/workload/burn.h
	$(say) DWZ $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -O2 -gdwarf-5 -Wl,--build-id=sha1 -o $@ $< && cp $@ $@.other && \
		cp $@ $@.whole && dwz -m $@.debug -M moved.debug $@ $@.other

# and its debug file, which packages install for hosts, names that one alone
$(S)/workload/split/apart: tests/vm/workload/lined.c tests/vm/workload/burn.h
	$(say) DWZ $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -O2 -gdwarf-5 -static -Wl,--build-id=sha1 -o $@ $< && cp $@ $@.other && \
		cp $@ $@.whole && dwz -m $@.dwz -M /usr/lib/debug/.dwz/stacktap/apart $@ $@.other && \
		$(user_objcopy) --only-keep-debug $@ $@.debug && $(user_objcopy) --strip-all -R .gnu_debugaltlink $@ && \
		readelf -n $@ | sed -n 's/.*Build ID: //p' >$@.id

# stripped, with a debug link and no build-id, beside what that names
$(S)/workload/deep_linked: $(S)/workload/deep_plain
	$(say) STRIP $@
	$(Q)$(user_objcopy) --only-keep-debug $< $@.debug
	$(Q)cd $(@D) && $(user_objcopy) --strip-all --add-gnu-debuglink=$(@F).debug $(<F) $(@F)

$(S)/workload/plugin.so: tests/vm/workload/plugin.c tests/vm/workload/burn.h
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(workload_cflags) -shared -fPIC -o $@ $<

# against musl: static and dynamic without frame pointers, and one that keeps them
musl := $(LAB_DIR)/$(ARCH)/musl
musl_name := $(if $(filter arm64,$(ARCH)),aarch64,$(ARCH))-linux-musl
musl_lib := $(musl)/usr/lib/$(musl_name)
seven_cflags = $(workload_cflags) -O2 -nostdinc -isystem $(musl)/usr/include/$(musl_name) -nostdlib
frameless := -fomit-frame-pointer -momit-leaf-frame-pointer
seven_static := -static -no-pie $(musl_lib)/crt1.o
$(S)/workload/musl/static: seven_cflags += $(frameless) $(seven_static)
$(S)/workload/musl/pointers: seven_cflags += $(seven_static)
$(S)/workload/musl/dynamic: seven_cflags += $(frameless) -pie -fPIE $(musl_lib)/Scrt1.o \
	-Wl,-dynamic-linker,/opt/stacktap/workload/musl/libc.so

$(musl)/lib/$(musl_name)/libc.so: tests/packages
	$(say) UNPACK $(musl)
	$(Q)rm -rf $(musl) && debs=$$(LAB=$(LAB_DIR) tests/vm/lab/apt $(if $(filter arm64,$(ARCH)),arm64,amd64) only \
		$$(tests/setup --list musl)) && for deb in $$debs; do dpkg-deb -x $$deb $(musl) || exit; done && touch $@

$(S)/workload/musl/libc.so: $(musl)/lib/$(musl_name)/libc.so
	$(Q)mkdir -p $(@D) && cp $< $@

$(addprefix $(S)/workload/musl/,static dynamic pointers): tests/vm/workload/seven.c tests/vm/workload/burn.h $(S)/workload/musl/libc.so
	$(say) CC $@
	$(Q)$(user_cc) $(seven_cflags) $(musl_lib)/crti.o $< -L$(musl_lib) -lc -lgcc $(musl_lib)/crtn.o -o $@

include tests/vm/kmod/kmodtest.mk
include tests/vm/shadow/shadow.mk

# --- pictures of the page
small := $(O)/view/small.otlp
$(small): tests/view/make_profile.py
	$(Q)mkdir -p $(@D) && python3 -B tests/view/make_profile.py --nodes 3000 --samples 8000 $@

.PHONY: pictures
pictures: $(U)/stacktap $(if $(RECORDING),,$(small)) ## what docs/views.md tells of, in build/pictures; RECORDING=yours.otlp
	$(Q)python=python3; $$python -c 'import selenium' 2>/dev/null || python=/usr/bin/python3; \
		$$python -B tests/view/pictures.py $(U)/stacktap $(or $(RECORDING),$(small)) $(O)/pictures
	@echo "$(O)/pictures/index.html shows them."

# --- the demo
.PHONY: demo
demo: ## build, boot a VM, profile real programs, print the hottest functions
	$(Q)tests/demo/demo "$(O)" "$(ARCH)" "$(MAKE)"

# --- everything that needs Debian packages alone
.PHONY: check test test-more test-collector vm
check: ## compilers, analyzers, the kernel's style
	$(Q)tests/run "$(O)" "$(MAKE)" check

test: ## everything but guests, and in both guests what shows each part at work
	$(Q)tests/run "$(O)" "$(MAKE)"

test-more: ## the VM cases that make test leaves out; FULL=1 for all of them on both architectures
	$(Q)tests/run "$(O)" "$(MAKE)" setup build 'counted-x86_64&' 'guests-arm64&' more-x86_64 \
		guests-arm64 counted-x86_64

# `make test` takes two CPUs less than 20 minutes.
quick_x86_64 := kmod command control daemon known_split short_lived
quick_arm64 := kmod kernel_time known_split unwind budget

# What make test-more leaves out unless FULL=1. On x86_64: a guest has no PMU to share, nor one to
# be in step with, to be throttled by or whose samples have a cost.
# The ceiling is the same code; arm64's guest shows it with the clock and with cycles. What late waits for, unit tests
# show with fewer CPU seconds. musl's threads begin with a frame pointer of 0 there.
spare_x86_64 := beside ceiling cost late lockstep musl throttle stall
# On arm64: this code is the same as on x86_64, and the last two run on the kernel of test-nmi.
spare_arm64 := abi absent bad_frames bad_input bpf clock_count coarse_timers command compare containers control daemon degrade doctor filters hotplug split_lines \
	images isolated late lifecycle lifetimes lockdown many_cpus power_loss recovery reload replies sessions short_lived soak \
	sparse_cpus table_limit tables_fuzz taken_over top upgraded overlay frozen abuse netlink_fuzz no_counter privileges sideband_loss depth tables upgraded

# Guests that count instructions do not feel how busy the host is: those of both architectures run beside the
# others, and give way to them; not all of it, as guests that sample for a while use whatever they get.
# Of arm64 the others follow its counted ones, beside x86_64's: two that are timed do not keep two CPUs busy.
.PHONY: vm-quick vm-more vm-counted
vm-quick:
	$(Q)$(MAKE) CASES="$(quick_$(ARCH))" vm

more_but = $(quick_$(ARCH)) $(if $(FULL),,$(spare_$(ARCH)))

# Emulation translates a library anew wherever it is mapped: a guest that has it at one address takes a sixth less
# CPU time. In those of make test, in cases that ask for it and with FULL=1 addresses are random.
vm-more:
	$(Q)$(MAKE) BUT="$(more_but)" GUESTS=timed $(if $(FULL),,APPEND=norandmaps) vm

vm-counted: # where make test has built everything
	$(Q)nice -n 5 tests/vm/run --arch $(ARCH) --output $(O) --guests counted --at-a-time 1 \
		$(addprefix --but ,$(more_but))

vm: ## the VM cases of ARCH; CASES="..." for some, BUT="..." for others, KERNEL=debug on a kernel of our own
	$(Q)$(MAKE) lab && $(MAKE) $(if $(filter nmi,$(LANE)),stage-nmi,stage) && \
		tests/vm/run --arch $(ARCH) --output $(O) $(if $(KERNEL),--kernel $(KERNEL)) \
			$(if $(RETRY),--retry) $(addprefix --append ,$(APPEND)) $(addprefix --guests ,$(GUESTS)) $(addprefix --lane ,$(LANE)) $(addprefix --but ,$(BUT)) $(CASES)

.PHONY: test-stacks
test-stacks: ## stacks of Debian's programs in both guests against libdwfl and perf
	$(Q)for arch in x86_64 arm64; do \
		$(MAKE) ARCH=$$arch LANE=stacks CASES="unwind_ exec_storm slices" vm || exit; done

.PHONY: test-java
test-java: ## stacks of the host's JRE in x86_64's guest, with its second compiler: what counts as complete is
	$(Q)$(MAKE) ARCH=x86_64 LANE=runtimes CASES=java vm

.PHONY: test-latency
test-latency: ## what keeps interrupts off longest, by the kernel's own tracers; on PREEMPT_RT, too
	$(Q)$(MAKE) ARCH=x86_64 KERNEL=latency LANE=latency CASES="latency kmod soak" vm
	$(Q)$(MAKE) ARCH=x86_64 KERNEL=latency-rt LANE=latency CASES="latency" vm

# what asks most of the module, in reasonable time; CI has it on the stock kernel. FULL=1 for every case but what
# depends on speed, for this kernel looks at each access (a sample's cost, programs that live 50 ms), and 64 CPUs; it has
# no function-graph tracer
debug_cases := $(if $(FULL),,abuse netlink_fuzz no_counter)

.PHONY: test-debug-kernel
test-debug-kernel: ## the module under KASAN, lockdep, kmemleak and others
	$(Q)$(MAKE) ARCH=x86_64 KERNEL=debug LANE="stacks$(if $(FULL), nmi)" \
		CASES="$(or $(CASES),$(debug_cases))" \
		BUT="$(if $(FULL),cost run_queue deadline short_lived exec_storm many_cpus)" vm

# hardware samples and everything else that depends on the context of an overflow, or on what a page is;
# FULL=1 for every case but pac and hooks, as it has no pointer authentication and no function-graph tracer
nmi_cases := $(if $(FULL),,kmod tables depth kernel_time watchdog)

.PHONY: test-nmi test-nmi-x86_64 test-nmi-arm64 stage-nmi
test-nmi: ## the capture path in NMIs: injected on x86_64, the PMU's on arm64; FULL=1 for every case
	$(Q)$(MAKE) test-nmi-x86_64
	$(Q)$(MAKE) test-nmi-arm64

test-nmi-x86_64: # on the stock kernel; NMI_WANTED=n of them
	$(Q)$(MAKE) ARCH=x86_64 lab && $(MAKE) ARCH=x86_64 stage-nmi && \
		tests/vm/run --arch x86_64 --output $(O) $(if $(RETRY),--retry) --lane nmi nmi

test-nmi-arm64: # on a kernel that has to be built first
	$(Q)$(MAKE) ARCH=arm64 KERNEL=nmi LANE="watchdog$(if $(FULL), stacks)" \
		CASES="$(or $(CASES),$(nmi_cases))" BUT="$(if $(FULL),pac hooks)" vm

stage-nmi: stage
	$(Q)$(MAKE) STACKTAP_TEST=1 module && mkdir -p $(S)/test && \
		cp -u $(K)-test/stacktap.ko $(K)-test/stacktap_nmi.ko $(S)/test/

test-collector: ## the same data through a real OpenTelemetry Collector (Go >= 1.26)
	$(Q)tests/run "$(O)" "$(MAKE)" collector

.PHONY: test-kafka
test-kafka: ## payloads through Collectors and a broker that speaks Kafka's protocol (Go >= 1.26; builds for minutes)
	$(Q)tests/collector/kafka.sh "$(O)" $(RECORDINGS)

.PHONY: test-clickhouse
test-clickhouse: ## payloads through a Collector into ClickHouse's engine, chdb of PyPI (Go >= 1.26; builds for minutes)
	$(Q)tests/collector/clickhouse.sh "$(O)" $(RECORDINGS)

.PHONY: test-objects
test-objects: ## payloads through a Collector into files and a bucket of an S3 server (Go >= 1.26; builds for minutes)
	$(Q)tests/collector/objects.sh "$(O)" $(RECORDINGS)

.PHONY: test-dashboard
test-dashboard: ## the Grafana dashboard in Grafana's own types, its queries in Prometheus' own engine (Go >= 1.26; builds for minutes)
	$(Q)tests/dashboard/run "$(O)"

.PHONY: test-speedscope
test-speedscope: user ## what convert writes, opened by speedscope of npm in a headless Chromium (npm)
	$(Q)/usr/bin/python3 -B tests/view/speedscope.py "$(abspath $(U))/stacktap" "$(abspath $(O))/view"

.PHONY: test-firefox
test-firefox: user ## what convert writes, read by the Firefox Profiler's own importer of npm (npm)
	$(Q)/usr/bin/python3 -B tests/view/firefox.py "$(abspath $(U))/stacktap" "$(abspath $(O))/view"

.PHONY: test-perfetto
test-perfetto: user ## what convert writes, read by Perfetto's trace_processor of npm (npm)
	$(Q)/usr/bin/python3 -B tests/view/perfetto.py "$(abspath $(U))/stacktap" "$(abspath $(O))/view"

.PHONY: test-go
test-go: oracle-build user ## programs of Go 1.2 to 1.27, which Go fetches, by their own tools (Go >= 1.21; 2 GB) [GO="VERSION..."]
	$(Q)mkdir -p "$(O)/go-versions"
	$(Q)/usr/bin/python3 -B tests/oracle/go_versions.py "$(abspath $(O)/oracle/line_names)" "$(abspath $(U)/stacktap)" \
		"$(abspath $(O)/oracle/go_steps)" "$(abspath $(O)/go-versions)" $(GO)

.PHONY: test-backends
test-backends: ## real servers by path, fed and asked: PYROSCOPE=PROGRAM PROFILECLI=PROGRAM PARCA=PROGRAM [RECORDINGS="FILE..."]
	$(Q)PYROSCOPE="$(PYROSCOPE)" PROFILECLI="$(PROFILECLI)" PARCA="$(PARCA)" tests/backends/run "$(O)" $(RECORDINGS)

# --- every kernel we claim
.PHONY: test-matrix
test-matrix: ## the module on 5.10 to 7.2, RT, cloud and 16 KiB pages too; FULL=1 boots them all
	$(Q)tests/run "$(O)" "$(MAKE)" matrix

# --- benchmarks
include tests/bench/bench.mk

# --- programs for checks from outside
include tests/oracle/oracle.mk

# --- fuzzing
include tests/fuzz/fuzz.mk

# --- do the tests notice?
include tests/faults/faults.mk
