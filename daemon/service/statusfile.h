/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's status for others to read: DIRECTORY/status (for people), DIRECTORY/status.json, and
 * DIRECTORY/lock, locked as long as the daemon lives, so that files of a dead one fool nobody and a
 * second one is refused.
 */
#ifndef STACKTAP_SERVICE_STATUSFILE_H
#define STACKTAP_SERVICE_STATUSFILE_H

#include "service/snapshot.h"

#define STATUSFILE_DIRECTORY "/run/stacktap"
#define STATUSFILE_USER "stacktap"	/* that the daemon runs as */

struct statusfile;

/* -EBUSY: another daemon runs. */
int statusfile_open(const char *directory, struct statusfile **ret_file);
/* Removes what was written. */
void statusfile_close(struct statusfile *file);

int statusfile_write(struct statusfile *file, const struct snapshot *snapshot);

/*
 * The file `serve': where profiles of the moment are to be had, a line for the daemon's user and root alone, as it
 * has the token. NULL: nowhere, and the file goes.
 */
int statusfile_write_address(struct statusfile *file, const char *address);

/*
 * The files of a living daemon; both NULL and 0 when none runs. Contents are checked no further than
 * that root, the daemon's user or we ourselves own them.
 */
int statusfile_read(const char *directory, char **ret_text, char **ret_json,
		    size_t *ret_json_size);

#endif /* STACKTAP_SERVICE_STATUSFILE_H */
