/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to the module and naming its sessions. All functions say what is wrong themselves. */
#ifndef STACKTAP_CLI_SESSION_H
#define STACKTAP_CLI_SESSION_H

#include "client/netlink.h"

/* Connect and check the ABI; *ret_module may be NULL. CLI_OK or CLI_FAILED. */
int session_connect(struct control **ret_control, struct control_module *ret_module);
/* Why a request was refused: the kernel's sentence, else errno's with a remedy. CLI_FAILED. */
int session_refused(const struct control *control, const char *what, int error);

/*
 * Call @each for every session that @name stands for: an id, "all", or the owner's name. CLI_OK when
 * all calls were; CLI_FAILED also when there is no such session ("all" may be none).
 */
int session_each_named(struct control *control, const char *name,
		       int (*each)(void *ctx, struct control *control,
				   const struct control_session *session),
		       void *ctx);

static inline void session_closep(struct control **control)
{
	control_close(*control);
}

#endif /* STACKTAP_CLI_SESSION_H */
