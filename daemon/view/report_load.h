/* SPDX-License-Identifier: Apache-2.0 */
/* A report of what a file or a store has. */
#ifndef STACKTAP_VIEW_REPORT_LOAD_H
#define STACKTAP_VIEW_REPORT_LOAD_H

#include "view/report.h"

/*
 * As recording_read() says it. What has no name is one row per mapping, so that a stripped library shows how
 * hot it is.
 */
int report_load(const char *path, const struct selection *selection, enum report_detail detail,
		struct report **ret_report, char *ret_error, size_t error_size);

#endif /* STACKTAP_VIEW_REPORT_LOAD_H */
