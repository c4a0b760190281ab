# SPDX-License-Identifier: Apache-2.0
# Planted faults: the VM cases, and unit programs, have to notice each of them. Long, so that make test leaves it out.

.PHONY: faults
faults: ## plant faults, one by one, that VM cases and unit programs must notice; FAULTS="..." for some
	$(Q)tests/faults/run --list $(FAULTS) >/dev/null
	$(Q)for guest in $$(tests/faults/run --list $(FAULTS) | awk '{ print $$2 }' | grep -v '^unit$$' | sort -u); do \
		kernel=$${guest#*-}; [ "$$kernel" != "$$guest" ] || kernel=; \
		$(MAKE) ARCH=$${guest%-*} KERNEL=$$kernel lab || exit 1; done
	$(Q)tests/faults/run --output $(O) --make $(MAKE) $(FAULTS)
