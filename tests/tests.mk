# SPDX-License-Identifier: Apache-2.0
# Unit tests: one cmocka program per tests/unit/test_*.c, under ASan and UBSan.

unit_sources := $(wildcard tests/unit/test_*.c)
unit_helpers := $(filter-out $(unit_sources),$(wildcard tests/unit/*.c))
unit_programs := $(patsubst tests/unit/%.c,$(O)/unit/%,$(unit_sources))

.PHONY: unit unit-build test

unit: ## build and run the unit tests (ASan, UBSan)
	$(Q)$(MAKE) SAN=1 ARCH=$(HOST_ARCH) unit-build
	$(Q)tests/unit/run $(O)/unit

unit-build: $(unit_programs)

$(O)/unit/%: tests/unit/%.c $(unit_helpers) $(U)/libstacktap.a
	$(say) TEST $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -Wno-missing-prototypes -Itests/unit $(user_ldflags) -o $@ $< $(unit_helpers) \
		$(U)/libstacktap.a $(user_libs) -lcmocka -lm
