# SPDX-License-Identifier: Apache-2.0
# The module, built in a mirror of the sources under build/ so that the tree stays clean.
#
# KDIR: headers of the kernel to build for; default: the guest kernel of ARCH.

KDIR ?= $(KHEADERS_$(ARCH))
kmod_cross := $(if $(filter-out $(HOST_ARCH),$(ARCH)),CROSS_COMPILE=aarch64-linux-gnu-)
K := $(O)/kmod-$(ARCH)$(if $(STACKTAP_TEST),-test)
kmod_inputs := Kbuild $(shell find kmod include -name '*.[chS]')

module: $(K)/stacktap.ko ## build stacktap.ko for the guest's kernel (KDIR= for another)

$(K)/stacktap.ko: $(kmod_inputs)
	$(say) KBUILD $@
	$(Q)mkdir -p $(K) && rm -rf $(K)/Kbuild $(K)/kmod/*.c $(K)/include && cp -a --parents $(kmod_inputs) $(K)/
	$(Q)$(MAKE) -C $(KDIR) O= M=$(abspath $(K)) ARCH=$(ARCH) $(kmod_cross) \
		$(if $(STACKTAP_TEST),STACKTAP_TEST=1) $(KBUILD_ARGS) $(if $(V),,-s) modules
