/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose rights the daemon works with. Started as root it does what only root may, starts its broker and is user
 * `stacktap' from then on, with CAP_PERFMON.
 */
#ifndef STACKTAP_SERVICE_RIGHTS_H
#define STACKTAP_SERVICE_RIGHTS_H

#include <stddef.h>

#include "service/config.h"

struct rights {
	char user[33];
	char kept[512];		/* why those it was started with; empty: it gave them up */
};

/*
 * Before there are threads. Where it cannot be that user it says so in the log and in *ret_rights, and goes on as it was
 * started. -errno and a sentence: the daemon cannot work, be it as it is, or began to give up and has to end.
 */
int rights_give_up(const struct config *config, const char *config_path, struct rights *ret_rights, char *ret_error,
		   size_t error_size);

#endif /* STACKTAP_SERVICE_RIGHTS_H */
