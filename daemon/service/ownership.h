/* SPDX-License-Identifier: Apache-2.0 */
/* Giving the daemon's directories to the user that it runs as, with what earlier versions left there as root. */
#ifndef STACKTAP_SERVICE_OWNERSHIP_H
#define STACKTAP_SERVICE_OWNERSHIP_H

#include <stdbool.h>
#include <sys/types.h>

struct ownership {
	uid_t from, to;		/* whose they were, from root on */
	gid_t group;
	bool only_looks;	/* whether it could be done */
	bool lacks_right;	/* CAP_CHOWN: nothing is given, but for what has been */
};

/*
 * Made if it is not there, and its parent is and may be written to. One that belongs to @from, and that nobody else may
 * write to, changes its owner with all that is in it, once it is clear that all of that is the daemon's own: @is_own, or
 * by its names. Then 0; else -errno and a sentence, and nothing has changed. One of @to is left as it is, and so is what
 * a directory or link of @to leads to: below it the user makes what it needs. Where one of anybody else does it is an error.
 */
int ownership_give(const struct ownership *ownership, const char *directory, mode_t mode, bool is_own,
		   char *ret_error, size_t error_size);

#endif /* STACKTAP_SERVICE_OWNERSHIP_H */
