# SPDX-License-Identifier: Apache-2.0
# Programs that write or send profiles for a check from outside; with ASan and UBSan.

oracle_programs := $(patsubst tests/oracle/%.c,$(O)/oracle/%,$(wildcard tests/oracle/*.c))

.PHONY: oracle-build oracle-programs
oracle-build:
	$(Q)$(MAKE) SAN=1 ARCH=$(HOST_ARCH) oracle-programs
	$(Q)$(MAKE) ARCH=$(HOST_ARCH) $(O)/oracle/unwind_rows

.PHONY: test-oracle
test-oracle: ## unwind tables of every program here and in the arm64 guest against readelf and libdw
	$(Q)UNWIND_ALL=1 tests/oracle/unwind.sh $(O)
	$(Q)$(MAKE) ARCH=arm64 live-guest

# the other implementation, which no program that is installed links
dw_libs = $(shell $(user_pkg_config) --libs libdw libelf)

include tests/oracle/live/live.mk

# it looks at millions of rows: without ASan
$(O)/oracle/unwind_rows: $(wildcard tests/oracle/rows/*.[ch]) $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) $(user_ldflags) -o $@ $(filter %.c,$^) \
		$(U)/libstacktap.a $(user_libs) $(dw_libs)

oracle-programs: $(oracle_programs) live

$(O)/oracle/%: tests/oracle/%.c tests/unit/synthetic.c $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -Itests/unit $(user_ldflags) -o $@ $< \
		tests/unit/synthetic.c $(U)/libstacktap.a $(user_libs) -lcmocka
