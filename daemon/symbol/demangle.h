/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ and Rust names, by libiberty's callback demanglers: those that return a string can take a gigabyte for
 * a name of 50 bytes. D has none other: names of it that could expand, or take long to find out that they are
 * none, are left. The C++ one can also take years to find out what a name means: a timer of the process ends that
 * by SIGPROF, and the time that all of it takes is bounded. For the parser alone, who asks it: parser_demangle().
 */
#ifndef STACKTAP_SYMBOL_DEMANGLE_H
#define STACKTAP_SYMBOL_DEMANGLE_H

#include <string.h>

#include "base/macro.h"

enum {
	DEMANGLE_MAX = 4096,		/* with the NUL */
	/*
	 * Without it. The demanglers recurse and put arrays on the stack by the length of their input; no
	 * compiler is known to emit longer names that are worth it.
	 */
	DEMANGLE_INPUT_MAX = 1024,
};

static inline bool demangle_is_d(const char *name)
{
	return name[0] == '_' && name[1] == 'D' &&
	       ((name[2] >= '0' && name[2] <= '9') || !strcmp(name, "_Dmain"));
}

/* By how it begins and how long it is. */
static inline bool demangle_may(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || demangle_is_d(name)) &&
	       strnlen(name, DEMANGLE_INPUT_MAX + 1) <= DEMANGLE_INPUT_MAX;
}

/*
 * The name as its source has it, without parameters; false when @mangled is none, its demangled name is
 * longer than fits, or it takes too long.
 */
bool demangle(const char *mangled, char ret_name[static DEMANGLE_MAX]);

#endif /* STACKTAP_SYMBOL_DEMANGLE_H */
