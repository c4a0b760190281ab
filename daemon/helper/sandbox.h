/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper gives up before it reads the first byte that somebody else wrote. */
#ifndef STACKTAP_HELPER_SANDBOX_H
#define STACKTAP_HELPER_SANDBOX_H

#include "helper/protocol.h"

/* Sanitizers need more system calls and address space than a helper is left with. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_CAN_CONFINE 0
#else
#define SANDBOX_CAN_CONFINE 1
#endif

/* Of their address space, shared libraries included. */
enum { SANDBOX_PARSER_BYTES = 256 << 20, SANDBOX_VIEWER_BYTES = 320 << 20 };

/*
 * A parser: no user's rights but nobody's, no capabilities, no files but those it is handed, no network,
 * SANDBOX_PARSER_BYTES of address space; any other system call than the few it needs kills it. Dies with
 * the thread that started it. An opener: of its owner's capabilities those by which other processes are
 * looked at, openat() for reading alone, no network either. (What openat2() is asked for no filter can see.)
 * A fetcher: nobody's rights, the network, files that anybody may read, and the one it is handed to write to.
 * False: the kernel cannot filter system calls, the rest holds.
 */
bool sandbox_enter(enum helper_kind kind);
/*
 * Who shows recordings: its owner's user without capabilities, opening for reading alone, no network, the last in line
 * for the CPU. Dies with the thread that started it. As above.
 */
bool sandbox_enter_viewer(void);

#endif /* STACKTAP_HELPER_SANDBOX_H */
