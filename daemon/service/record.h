/* SPDX-License-Identifier: Apache-2.0 */
/* Starting `stacktap record' for a request, with the rights of who does it. */
#ifndef STACKTAP_SERVICE_RECORD_H
#define STACKTAP_SERVICE_RECORD_H

#include <sys/types.h>

#include "broker/record.h"

/*
 * @arguments: config_record_arguments(). @program: `stacktap', NULL: the one beside this program, -ENOENT if there is
 * none.
 */
int record_start(const struct record_request *request, char *const *arguments, const char *program, int output,
		 int complaints, pid_t *ret_pid);

#endif /* STACKTAP_SERVICE_RECORD_H */
