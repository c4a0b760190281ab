# SPDX-License-Identifier: Apache-2.0
# Another unwinder beside the module's walk, for the guest; needs $(S), $(U), $(user_cc).

shadow_inputs := $(wildcard tests/vm/shadow/*.[ch])

$(S)/shadow: $(shadow_inputs) $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) $(user_ldflags) -o $@ \
		$(filter %.c,$(shadow_inputs)) $(U)/libstacktap.a $(user_libs) $(dw_libs)

stage: $(S)/shadow
