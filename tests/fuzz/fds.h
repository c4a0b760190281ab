/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a descriptor stayed open: the numbers that are free are those that were. */
#ifndef STACKTAP_FUZZ_FDS_H
#define STACKTAP_FUZZ_FDS_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS_LOOKED_AT = 12 };

struct fds {
	int numbers[FDS_LOOKED_AT];
};

static inline struct fds fds_free(void)
{
	struct fds fds;

	for (size_t i = 0; i < FDS_LOOKED_AT; i++)
		fds.numbers[i] = dup(STDERR_FILENO);
	for (size_t i = 0; i < FDS_LOOKED_AT; i++)
		close(fds.numbers[i]);
	return fds;
}

static inline void fds_check(const struct fds *before)
{
	const struct fds now = fds_free();

	if (memcmp(&now, before, sizeof(now)) != 0)
		abort();
}

#endif /* STACKTAP_FUZZ_FDS_H */
