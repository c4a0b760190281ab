# SPDX-License-Identifier: Apache-2.0
# The module's own test client, for the guest; needs $(S), $(user_cc), $(say) of the includer.

kmodtest_flags := -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
	-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls \
	-static -Iinclude -Iinclude/uapi
kmodtest_inputs := $(wildcard tests/vm/kmod/*.[ch]) $(addprefix tests/vm/workload/,spin_with.h write_with.h)

$(S)/kmodtest: $(kmodtest_inputs) include/uapi/linux/stacktap.h $(wildcard include/stacktap/*.h)
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(kmodtest_flags) -o $@ $(filter %.c,$(kmodtest_inputs))

stage: $(S)/kmodtest
