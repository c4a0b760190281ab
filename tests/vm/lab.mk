# SPDX-License-Identifier: Apache-2.0
#
# The VM lab: guest kernels, their headers, guest trees and the arm64 sysroot, under $(O)/vm.
# The includer may have set O (build directory) and ARCH (x86_64 or arm64, as the guest's).

O ?= build
lab_arch_of = $(patsubst aarch64,arm64,$(patsubst amd64,x86_64,$(1)))
LAB_HOST := $(call lab_arch_of,$(shell uname -m))
LAB_ARCH = $(call lab_arch_of,$(or $(ARCH),$(LAB_HOST)))
LAB_DIR = $(abspath $(O))/vm

# Links that `make lab` keeps on the newest version; they may be named before they exist.
KHEADERS_x86_64 = $(LAB_DIR)/x86_64/kdir
KHEADERS_arm64 = $(LAB_DIR)/arm64/kdir
GUEST_ROOT_x86_64 = $(LAB_DIR)/x86_64/root
GUEST_ROOT_arm64 = $(LAB_DIR)/arm64/root
SYSROOT_arm64 = $(LAB_DIR)/arm64/sysroot
CROSS_arm64 = aarch64-linux-gnu-
PKG_CONFIG_arm64 = PKG_CONFIG_SYSROOT_DIR=$(SYSROOT_arm64) \
	PKG_CONFIG_LIBDIR=$(SYSROOT_arm64)/usr/lib/aarch64-linux-gnu/pkgconfig:$(SYSROOT_arm64)/usr/share/pkgconfig \
	pkg-config

# How a rule boots a guest: $(LAB_BOOT) [options] -- command
LAB_BOOT = LAB=$(LAB_DIR) ARCH=$(LAB_ARCH) tests/vm/lab/boot

.PHONY: lab lab-refresh lab-check lab-clean

lab: ## guest kernel, headers and user land of ARCH
	@tests/setup vm $(filter arm64,$(LAB_ARCH)) $(if $(KERNEL),kernel)
	@LAB=$(LAB_DIR) tests/vm/lab/prepare $(LAB_ARCH)
	@$(if $(KERNEL),LAB=$(LAB_DIR) tests/vm/lab/own $(KERNEL) $(LAB_ARCH))

lab-refresh:
	@LAB=$(LAB_DIR) tests/vm/lab/prepare --refresh $(LAB_ARCH)


lab-check: lab ## does the lab itself tell the truth?
	@LAB=$(LAB_DIR) tests/vm/lab/check $(LAB_ARCH)

lab-clean:
	rm -rf $(LAB_DIR)
