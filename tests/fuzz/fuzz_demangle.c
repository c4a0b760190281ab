// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a function's name, of C++, Rust or D: demangled or left as it is, within its limit, and soon. What the
 * library leaves behind where a name is given up is bounded there and no fault here.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *mangled = malloc(size + 1), *name = malloc(DEMANGLE_MAX);

	if (!mangled || !name)
		abort();
	memcpy(mangled, data, size);
	mangled[size] = '\0';
	if (demangle(mangled, name) && (!name[0] || strnlen(name, DEMANGLE_MAX) == DEMANGLE_MAX || !demangle_may(mangled)))
		abort();
	free(mangled);
	free(name);
	return 0;
}
