# SPDX-License-Identifier: Apache-2.0
# A program that is single-stepped, and what steps it: on this machine with ASan and UBSan, and for
# the arm64 guest.

L := $(if $(SAN),$(O)/oracle,$(S)/live)
live_sources := $(wildcard tests/oracle/live/*.c)
live_cxx := $(if $(filter $(ARCH),$(HOST_ARCH)),g++,aarch64-linux-gnu-g++)

.PHONY: live live-guest
live: $(L)/unwind_live $(L)/unwind_target

# A debugger's single step never leaves a pair of load-exclusive and store-exclusive: this CPU has
# atomic instructions, and the libraries use them. Two that take turns at every instruction are quicker
# on one CPU.
live-guest: lab live
	$(Q)$(LAB_BOOT) --cpu cortex-a76 --smp 1 --timeout 3600 --ro $(L):/opt/live \
		--ro tests/oracle/live:/live -- python3 -B /live/live.py /opt/live 100

$(L)/unwind_live: $(live_sources) $(wildcard tests/oracle/live/*.h include/stacktap/*.h) \
		$(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) $(user_ldflags) -o $@ $(live_sources) \
		$(U)/libstacktap.a $(user_libs) $(dw_libs)

# without frame pointers, and bound at the first call: what is hard to unwind
$(L)/unwind_target: tests/oracle/live/unwind_target.cc
	$(say) CXX $@
	$(Q)mkdir -p $(@D) && $(live_cxx) -O2 -fomit-frame-pointer -Wall -Wextra -Werror -Wl,-z,lazy \
		-pthread -o $@ $<
