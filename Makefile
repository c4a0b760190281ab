# SPDX-License-Identifier: Apache-2.0
#
# make            module and user space            make demo             the whole way in a VM
# make test       every test with Debian packages  make test-collector   a real Collector as well
# make install    on a real server (DKMS, systemd) make help             all targets
#
# V=1 shows commands, O=dir moves build/, ARCH=arm64 builds for and boots the other guest.

O ?= build
# one name for one directory: what the compiler wrote of dependencies has it
override O := $(patsubst $(CURDIR)/%,%,$(abspath $(O)))
ARCH ?= $(shell uname -m)
override ARCH := $(patsubst aarch64,arm64,$(patsubst amd64,x86_64,$(ARCH)))
HOST_ARCH := $(patsubst aarch64,arm64,$(shell uname -m))
VERSION := $(shell sed -n 's/^\#define STACKTAP_VERSION *"\(.*\)"/\1/p' include/stacktap/version.h)

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/stacktap
SYSCONFDIR ?= /etc
UNITDIR ?= $(SYSCONFDIR)/systemd/system
UDEVDIR ?= $(SYSCONFDIR)/udev/rules.d
MODLOADDIR ?= $(SYSCONFDIR)/modules-load.d
DKMSDIR ?= /usr/src/stacktap-$(VERSION)
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
MAKEFLAGS += --no-print-directory
endif

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all user module

all: user module

help:
	@sed -n '3,7s/^# \{0,1\}//p' Makefile
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | sort -u | column -t -s '|'

include tests/vm/lab.mk
include daemon/daemon.mk
include kmod/kmod.mk
include packaging/install.mk
include tests/tests.mk

user: $(user_programs) ## build stacktap and stacktapd

clean: ## remove what was compiled, keep guests and kernels
	rm -rf $(O)/user* $(O)/kmod* $(O)/unit* $(O)/fuzz*

distclean: ## remove build/ altogether
	rm -rf $(O)
