# SPDX-License-Identifier: Apache-2.0
# The module, built in a mirror of the sources under build/ so that the tree stays clean.
#
# KDIR: headers of the kernel to build for; default: the guest kernel of ARCH, or KERNEL of the lab.

KDIR ?= $(if $(KERNEL),$(LAB_DIR)/$(ARCH)/kdir-$(KERNEL),$(KHEADERS_$(ARCH)))
kmod_cross := $(if $(filter-out $(HOST_ARCH),$(ARCH)),CROSS_COMPILE=aarch64-linux-gnu-)
K := $(O)/kmod-$(ARCH)$(if $(KERNEL),-$(KERNEL))$(if $(STACKTAP_TEST),-test)
kmod_inputs := Kbuild kmod/compat/probes.mk $(shell find kmod include -name '*.[chS]')
# a kernel of our own may become another under the same name
kmod_kernel := $(if $(KERNEL),$(wildcard $(KDIR)/Module.symvers))

module: $(K)/stacktap.ko ## build stacktap.ko for the guest's kernel (KDIR= for another)

# $(1): where to mirror and build; $(2): a command on the mirror first. What is called is not seen to be make: hence +.
define kmod_build
	$(Q)mkdir -p $(1) && rm -rf $(1)/Kbuild $(1)/kmod/*.c $(1)/include && \
		cp -a --parents $(kmod_inputs) $(1)/ $(if $(2),&& $(2))
	$(Q)+$(MAKE) -C $(KDIR) O= M=$(abspath $(1)) ARCH=$(ARCH) $(kmod_cross) \
		$(if $(STACKTAP_TEST),STACKTAP_TEST=1) $(KBUILD_ARGS) $(if $(V),,-s) modules
endef

$(K)/stacktap.ko: $(kmod_inputs) $(kmod_kernel)
	$(say) KBUILD $@
	$(call kmod_build,$(K))

# $(1): where to make a variant of the module; $(2): the header that it has another one of; $(3): sed's script for that;
# $(4): what the sources have that depend on it. Only these are compiled: their objects are removed, all others keep
# their time, and the commands that kbuild compares and the lists of what it links name the new place.
define kmod_variant
	$(Q)rm -rf $(1) && cp -a $(K) $(1) && rm $(1)/stacktap.ko && \
		find $(1) \( -name '.*.cmd' -o -name '*.mod' \) -exec sed -i 's,$(K)/,$(1)/,g' {} + && \
		sed -i $(3) $(1)/$(2) && touch -r $(K)/$(2) $(1)/$(2) && \
		grep -l $(4) $(1)/kmod/*.c | sed 's/c$$/o/' | xargs rm
	$(Q)+$(MAKE) -C $(KDIR) O= M=$(abspath $(1)) ARCH=$(ARCH) $(kmod_cross) $(KBUILD_ARGS) $(if $(V),,-s) modules
endef

# modules that say another ABI than ours, for the tests of what user space makes of them
$(K)-abi99/stacktap.ko $(K)-abi1.3/stacktap.ko: $(K)-abi%/stacktap.ko: $(K)/stacktap.ko
	$(say) KBUILD $@
	$(call kmod_variant,$(K)-abi$*,include/uapi/linux/stacktap.h,\
		-e 's/define STACKTAP_ABI_MAJOR.*/define STACKTAP_ABI_MAJOR $(basename $*)/' \
		-e 's/define STACKTAP_ABI_MINOR.*/define STACKTAP_ABI_MINOR $(or $(patsubst .%,%,$(suffix $*)),0)/',\
		STACKTAP_ABI_M)

# a module with ten times the time for a walk, for CPUs that count a nanosecond for an instruction
$(K)-patient/stacktap.ko: $(K)/stacktap.ko
	$(say) KBUILD $@
	$(call kmod_variant,$(K)-patient,kmod/session.h,\
		's/\(define SESSION_WALK_LIMIT_NS .* 100000\)/\10/',SESSION_WALK_LIMIT_NS)

# a module that promises what it does on PREEMPT_RT
$(K)-strict/stacktap.ko: $(K)/stacktap.ko
	$(say) KBUILD $@
	$(call kmod_variant,$(K)-strict,kmod/session.h,\
		's/\(define SESSION_IS_STRICT\) .*/\1 1/',SESSION_WALK_LIMIT_NS)

# a module that makes perf refuse counters, for tests; no part of ours
$(K)-refuse/stacktap_refuse.ko: kmod/test/refuse.c $(kmod_kernel)
	$(say) KBUILD $@
	$(call kmod_build,$(K)-refuse,printf '%s\n' 'obj-m := stacktap_refuse.o' \
		'stacktap_refuse-y := kmod/test/refuse.o' >$(K)-refuse/Kbuild)
