/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ and Rust names, by libiberty's callback demanglers: those that return a string can take a gigabyte for
 * a name of 255 bytes. D has no other; its names are asked for only if little of them can be read in several
 * ways or is a reference back, which makes them grow and take years. C++ names can take years as well:
 * SIGPROF, of a timer of the thread's own, ends that, and the time that all of it takes is bounded.
 */
#ifndef STACKTAP_SYMBOL_DEMANGLE_H
#define STACKTAP_SYMBOL_DEMANGLE_H

#include "base/macro.h"

enum { DEMANGLE_MAX = 4096 };	/* with the NUL */

/*
 * The name as its source has it, without parameters; false when @mangled is none, its demangled name is
 * longer than fits, or it takes too long. One thread at a time, which does not block SIGPROF.
 */
bool demangle(const char *mangled, char ret_name[static DEMANGLE_MAX]);

#endif /* STACKTAP_SYMBOL_DEMANGLE_H */
