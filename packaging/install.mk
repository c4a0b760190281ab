# SPDX-License-Identifier: Apache-2.0
# Installing: user space below PREFIX, configuration below SYSCONFDIR, the module's sources for DKMS.
#
# With DESTDIR nothing but files below it is touched. Without it the module is also built and
# installed for every kernel whose headers are here (DKMS=no leaves that out), the group is made, and
# systemd and udev are told.

SYSUSERSDIR ?= $(SYSCONFDIR)/sysusers.d
CONFDIR ?= $(SYSCONFDIR)/stacktap
INSTALL ?= install

M := $(O)/man
man_pages := $(patsubst man/%.scd,$(M)/%,$(wildcard man/*.scd)) $(patsubst man/%.scd.in,$(M)/%,$(wildcard man/*.scd.in))
# what pages share, or take from elsewhere
man_parts := man/page man/counters daemon/counter/counters.def docs/abi.md docs/formats.md include/uapi/linux/stacktap.h \
	$(wildcard man/shared/*.scd)
dkms_sources := Kbuild packaging/dkms-module kmod/compat/probes.mk $(wildcard kmod/*.[ch] kmod/*/*.[chS] include/stacktap/*.h \
	include/uapi/linux/*.h)
completions := $(foreach program,stacktap stacktapd stacktap-soak,$(BASHCOMPDIR)/$(program) $(ZSHCOMPDIR)/_$(program) \
	$(FISHCOMPDIR)/$(program).fish)
root := $(DESTDIR)

.PHONY: man install install-user install-dkms install-host uninstall

man: $(man_pages) ## build the manual pages

dashboard := $(O)/grafana/stacktap.json

.PHONY: dashboard
dashboard: $(dashboard) ## a Grafana dashboard of the daemon's metrics, to be imported
	@echo "$(dashboard) is there. Grafana: Dashboards, New, Import."

$(dashboard): packaging/dashboard man/counters daemon/counter/counters.def
	$(say) GEN $@
	$(Q)mkdir -p $(@D) && packaging/dashboard daemon/counter/counters.def >$@.new && mv $@.new $@

$(M)/%: man/%.scd
	$(say) MAN $@
	$(Q)mkdir -p $(@D) && scdoc <$< >$@

$(M)/%: man/%.scd.in $(man_parts)
	$(say) MAN $@
	$(Q)mkdir -p $(@D) && man/counters daemon/counter/counters.def <$< >$@.scd && man/page <$@.scd | scdoc >$@ && rm $@.scd

install: install-user install-host install-dkms ## install everything (DESTDIR, PREFIX, DKMS=no)
	@echo "installed. Next: systemctl enable --now stacktapd, or stacktap record -a"

install-user: $(user_programs) $(man_pages)
	$(say) INSTALL "$(root)$(PREFIX)"
	$(Q)$(INSTALL) -D -m 755 $(U)/stacktap $(root)$(BINDIR)/stacktap
	$(Q)$(INSTALL) -D -m 755 $(U)/stacktapd $(root)$(SBINDIR)/stacktapd
	$(Q)$(INSTALL) -D -m 755 packaging/soak $(root)$(SBINDIR)/stacktap-soak
	$(Q)$(foreach page,$(man_pages),$(INSTALL) -D -m 644 $(page) \
		$(root)$(MANDIR)/man$(lastword $(subst ., ,$(page)))/$(notdir $(page)) &&) true
	$(Q)$(INSTALL) -D -m 644 docs/secure-boot.md $(root)$(DOCDIR)/secure-boot.md
	$(Q)$(foreach file,$(completions),$(INSTALL) -D -m 644 completion/$(notdir $(file)) $(root)$(file) &&) true
	$(Q)$(INSTALL) -d $(root)$(UNITDIR)
	$(Q)sed -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' \
		packaging/stacktapd.service.in >$(root)$(UNITDIR)/stacktapd.service
	$(Q)chmod 644 $(root)$(UNITDIR)/stacktapd.service
	$(Q)$(INSTALL) -D -m 644 packaging/70-stacktap.rules $(root)$(UDEVDIR)/70-stacktap.rules
	$(Q)$(INSTALL) -D -m 644 packaging/stacktap.sysusers $(root)$(SYSUSERSDIR)/stacktap.conf
	$(Q)$(INSTALL) -D -m 644 packaging/stacktap.modules-load $(root)$(MODLOADDIR)/stacktap.conf
	$(Q)test -e $(root)$(CONFDIR)/stacktap.conf || \
		$(INSTALL) -D -m 600 packaging/stacktap.conf $(root)$(CONFDIR)/stacktap.conf

# Without DESTDIR and with DKMS=no the module is somebody else's, such as the package's.
has_dkms := $(if $(DESTDIR),yes,$(DKMS))

# The last step on a host: it fails where the running kernel has no headers, and the rest is in place then.
ifeq ($(DESTDIR),)
install-dkms: install-host
endif

# dkms.conf states the version and the oldest kernel, too; what is installed says what the headers say.
install-dkms:
ifneq ($(has_dkms),no)
	$(say) INSTALL "$(root)$(DKMSDIR)"
	$(Q)rm -rf $(root)$(DKMSDIR)
	$(Q)$(foreach file,$(dkms_sources),$(INSTALL) -D -m 644 $(file) $(root)$(DKMSDIR)/$(file) &&) true
	$(Q)sed -e 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="$(VERSION)"/' \
		-e "s#^BUILD_EXCLUSIVE_KERNEL=.*#BUILD_EXCLUSIVE_KERNEL=\"$$(packaging/kernels pattern)\"#" \
		dkms.conf >$(root)$(DKMSDIR)/dkms.conf
	$(Q)chmod 644 $(root)$(DKMSDIR)/dkms.conf
ifeq ($(DESTDIR),)
	$(Q)command -v dkms >/dev/null || \
		{ echo "dkms is missing: apt install dkms, or make install DKMS=no" >&2; exit 1; }
	$(Q)packaging/dkms-module remove $(VERSION)
	$(Q)packaging/dkms-module install $(VERSION)
endif
endif

install-host: install-user
ifeq ($(DESTDIR),)
	$(Q)if command -v systemd-sysusers >/dev/null; then \
		systemd-sysusers $(SYSUSERSDIR)/stacktap.conf; \
	else getent group stacktap >/dev/null || groupadd --system stacktap; \
		getent passwd stacktap >/dev/null || \
		useradd --system --gid stacktap --no-create-home --home-dir / --shell /usr/sbin/nologin stacktap; fi
	$(Q)if [ -d /run/udev ]; then udevadm control --reload; fi
	$(Q)if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif

# The sources are laid out as Debian's tools want them, because debian/ has to be at the top.
.PHONY: deb
deb: ## stacktap-dkms as a Debian package
	$(say) DEB $(O)/deb
	$(Q)rm -rf $(O)/deb && mkdir -p $(O)/deb/stacktap
	$(Q)cp -a --parents Makefile $(filter-out packaging/% %.mk,$(dkms_sources)) dkms.conf docs/secure-boot.md packaging \
		$(shell find daemon kmod tests -name '*.mk') $(O)/deb/stacktap/
	$(Q)cp -a packaging/debian $(O)/deb/stacktap/
	$(Q)mkdir -p $(O)/deb/stacktap/debian/source && echo '3.0 (native)' >$(O)/deb/stacktap/debian/source/format
	$(Q)printf '%s\n' 'stacktap ($(VERSION)) unstable; urgency=medium' '' '  * See CHANGELOG.md.' '' \
		" -- The stacktap authors <maintainers@stacktap.invalid>  $$(LC_ALL=C date -R -r CHANGELOG.md)" \
		>$(O)/deb/stacktap/debian/changelog
	$(Q)cd $(O)/deb/stacktap && dpkg-buildpackage -d -us -uc -b >../build.log 2>&1 || \
		{ cat ../build.log >&2; exit 1; }

# The store, the group and a configuration that was changed are the owner's.
uninstall: ## remove what install installed
	$(say) REMOVE "$(root)$(PREFIX)"
ifeq ($(DESTDIR),)
	$(Q)if [ -d /run/systemd/system ]; then systemctl disable --now stacktapd || true; fi
ifneq ($(DKMS),no)
	$(Q)if command -v dkms >/dev/null; then packaging/dkms-module remove $(VERSION) || true; fi
endif
endif
	$(Q)rm -f $(root)$(BINDIR)/stacktap $(root)$(SBINDIR)/stacktapd $(root)$(SBINDIR)/stacktap-soak \
		$(foreach page,$(man_pages),$(root)$(MANDIR)/man$(lastword $(subst ., ,$(page)))/$(notdir $(page))) \
		$(root)$(DOCDIR)/secure-boot.md $(addprefix $(root),$(completions)) $(root)$(UNITDIR)/stacktapd.service \
		$(root)$(UDEVDIR)/70-stacktap.rules $(root)$(SYSUSERSDIR)/stacktap.conf \
		$(root)$(MODLOADDIR)/stacktap.conf
	$(Q)if cmp -s packaging/stacktap.conf $(root)$(CONFDIR)/stacktap.conf; then \
		rm -f $(root)$(CONFDIR)/stacktap.conf && rmdir --ignore-fail-on-non-empty $(root)$(CONFDIR); fi
ifneq ($(has_dkms),no)
	$(Q)rm -rf $(root)$(DKMSDIR)
endif
ifeq ($(DESTDIR),)
	$(Q)if [ -d /run/udev ]; then udevadm control --reload; fi
	$(Q)if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif
