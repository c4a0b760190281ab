/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that wait to be taken from a signalfd. */
#ifndef STACKTAP_BASE_SIGNAL_H
#define STACKTAP_BASE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* Is there one that ends the program? It stays pending. */
static inline bool signal_wants_end(void)
{
	sigset_t set;

	return !sigpending(&set) &&
	       (sigismember(&set, SIGINT) > 0 || sigismember(&set, SIGTERM) > 0);
}

#endif /* STACKTAP_BASE_SIGNAL_H */
