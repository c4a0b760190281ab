# SPDX-License-Identifier: Apache-2.0
# User space: one static library, two programs. SAN=1 builds with ASan and UBSan beside it.

CC ?= cc
ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar
PKG_CONFIG ?= pkg-config
user_packages := libnl-3.0 libnl-genl-3.0 libprotobuf-c libcurl libkmod zlib \
	libdeflate libzstd liblzma libsystemd libgcrypt libseccomp libcap-ng libmicrohttpd

user_flavour := $(ARCH)$(if $(SAN),-san)
U := $(O)/user-$(user_flavour)

ifneq ($(ARCH),$(HOST_ARCH))
ifeq ($(ARCH),arm64)
user_cc := aarch64-linux-gnu-gcc --sysroot=$(abspath $(SYSROOT_arm64))
user_ar := aarch64-linux-gnu-ar
user_objcopy := aarch64-linux-gnu-objcopy
user_pkg_config := PKG_CONFIG_SYSROOT_DIR=$(abspath $(SYSROOT_arm64)) \
	PKG_CONFIG_LIBDIR=$(abspath $(SYSROOT_arm64))/usr/lib/aarch64-linux-gnu/pkgconfig:$(abspath $(SYSROOT_arm64))/usr/share/pkgconfig \
	$(PKG_CONFIG)
else
$(error user space cannot be built for $(ARCH) on $(HOST_ARCH))
endif
else
user_cc := $(CC)
user_ar := $(AR)
user_objcopy := objcopy
user_pkg_config := $(PKG_CONFIG)
endif

comma := ,
user_warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wcast-qual -Wformat=2 -Wundef -Wvla -Wwrite-strings -Werror
user_san := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=all)
# frame pointers: a profiler should be able to profile itself
user_cflags = -std=gnu11 $(if $(SAN),-O1 -g1,-O2 -g) -fno-omit-frame-pointer -fstack-protector-strong -D_GNU_SOURCE \
	$(if $(SAN),,-D_FORTIFY_SOURCE=2) -pthread $(user_warnings) $(user_san) \
	-Iinclude/uapi -Iinclude -Idaemon -I$(U)/gen \
	$(shell $(user_pkg_config) --cflags $(user_packages)) $(CFLAGS)
user_ldflags = -pthread $(user_san) -Wl,-z,relro,-z,now $(LDFLAGS)
user_libs = $(shell $(user_pkg_config) --libs $(user_packages)) -liberty -lm
# the screen of top and a disassembler, which the daemon has no use for
cli_libs = $(shell $(user_pkg_config) --libs ncursesw capstone)

user_protos := $(wildcard daemon/export/proto/*.proto daemon/view/proto/*.proto)
user_generated := $(patsubst %.proto,$(U)/gen/%.pb-c.c,$(notdir $(user_protos)))
user_mains := daemon/service/stacktapd.c daemon/cli/main.c
cli_sources := daemon/symbol/disassemble.c $(wildcard daemon/cli/*.c)
user_sources := $(filter-out $(user_mains) $(cli_sources),$(wildcard daemon/*/*.c))
user_objects := $(patsubst %.c,$(U)/%.o,$(user_sources)) $(user_generated:.c=.o)
cli_objects := $(patsubst %.c,$(U)/%.o,$(cli_sources))
user_programs := $(U)/stacktapd $(U)/stacktap

.SECONDARY: $(user_generated)

$(U)/libstacktap.a: $(user_objects)
	$(say) AR $@
	$(Q)rm -f $@ && $(user_ar) rcs $@ $^

$(U)/stacktapd: $(U)/daemon/service/stacktapd.o $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)$(user_cc) $(user_ldflags) -o $@ $^ $(user_libs)

$(U)/stacktap: $(cli_objects) $(U)/libstacktap.a
	$(say) LINK $@
	$(Q)$(user_cc) $(user_ldflags) -o $@ $^ $(user_libs) $(cli_libs)

$(U)/daemon/%.o: daemon/%.c $(user_generated)
	$(say) CC $@
	$(Q)mkdir -p $(@D) && $(user_cc) $(user_cflags) -MMD -MP -c -o $@ $<

# the range of kernels, which stands in the module's header alone
$(U)/daemon/doctor/build.o: user_cflags += \
	-DSTACKTAP_KERNEL_MIN='"$(shell packaging/kernels min)"' \
	-DSTACKTAP_KERNEL_TESTED='"$(shell packaging/kernels tested)"'
$(U)/daemon/doctor/build.o: kmod/compat/kernels.h

# the page's files are in it as they are
$(U)/daemon/view/page_files.o: $(wildcard daemon/view/page/*)

# generated code is not ours to warn about; one file includes another's header
$(U)/gen/%.o: $(U)/gen/%.c $(user_generated)
	$(say) CC $@
	$(Q)$(user_cc) $(filter-out -W% -fanalyzer,$(user_cflags)) -c -o $@ $<

$(U)/gen/%.pb-c.c: daemon/export/proto/%.proto
	$(say) PROTO $@
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=daemon/export/proto --c_out=$(@D) $<

$(U)/gen/%.pb-c.c: daemon/view/proto/%.proto
	$(say) PROTO $@
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=daemon/view/proto --c_out=$(@D) $<

-include $(patsubst %.o,%.d,$(filter-out $(user_generated:.c=.o),$(user_objects)) $(cli_objects) $(U)/daemon/service/stacktapd.d)
