# SPDX-License-Identifier: Apache-2.0
# libFuzzer programs (clang): one for each tests/fuzz/fuzz_*.c. FUZZ_SECONDS each.

FUZZ_SECONDS ?= 53
fuzz_programs := $(patsubst tests/fuzz/%.c,$(O)/bin/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: fuzz fuzz-programs fuzz-syntax
fuzz: ## throw random bytes at every parser of foreign files (clang)
	$(Q)$(MAKE) CC=clang SAN=1 ARCH=$(HOST_ARCH) O=$(O)/fuzz CFLAGS=-fsanitize=fuzzer-no-link \
		fuzz-programs
	$(Q)tests/fuzz/run $(O)/fuzz $(FUZZ_SECONDS)

fuzz-programs: $(fuzz_programs)

# beside user, which makes the headers
fuzz-syntax:
	$(Q)$(user_cc) $(user_cflags) -fsyntax-only $(wildcard tests/fuzz/fuzz_*.c)

$(O)/bin/%: tests/fuzz/%.c $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -fsanitize=fuzzer $(user_ldflags) -o $@ $< \
		$(U)/libstacktap.a $(user_libs)
