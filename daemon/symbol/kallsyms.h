/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's and its modules' functions by run-time address, from /proc/kallsyms: 8 bytes each
 * and the names, 3 to 5 MB for a distribution kernel. Charged to POOL_SYMBOLS.
 */
#ifndef STACKTAP_SYMBOL_KALLSYMS_H
#define STACKTAP_SYMBOL_KALLSYMS_H

#include "base/macro.h"

enum {
	KALLSYMS_SYMBOLS_MAX = 400 * 1000,
	KALLSYMS_NAMES_MAX = 10 * 1024 * 1024,
};

struct kallsym {
	uint32_t start;		/* minus kallsyms.base */
	uint32_t name;		/* offset in names */
};

struct kallsyms {
	uint64_t base;
	uint64_t text, end;	/* of the kernel image: _text, _end; 0: unknown */
	struct kallsym *symbols; /* sorted, one per address */
	uint32_t count;
	char *names;
	uint32_t names_bytes;
	bool is_hidden;		/* no function in it: all addresses are zero, or the file is empty */
	bool is_partial;	/* it did not fit */
	size_t bytes;		/* charged */
};

/*
 * @path: /proc/kallsyms. An empty table when its addresses are hidden, by kptr_restrict, or all of it,
 * as systemd's ProtectKernelTunables= does.
 */
int kallsyms_read(const char *path, struct kallsyms **ret_kallsyms);
int kallsyms_read_fd(int fd, struct kallsyms **ret_kallsyms);	/* which it closes */
void kallsyms_free(struct kallsyms *kallsyms);

/* The nearest function at or below @address, NULL when there is none; *ret_start is its address. */
const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, uint64_t *ret_start);

#endif /* STACKTAP_SYMBOL_KALLSYMS_H */
