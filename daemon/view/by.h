/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of a table are. */
#ifndef STACKTAP_VIEW_BY_H
#define STACKTAP_VIEW_BY_H

#include "base/macro.h"

enum view_by {
	BY_FUNCTION,
	BY_OBJECT,
	BY_LINE,	/* of a source file; of what has none the function. Of one recording alone */
	BY_PROCESS,	/* by name */
	BY_THREAD,	/* by its name and its process's */
	BY_CONTAINER,
	BY_SERVICE,
	BY_CGROUP,
	BY_COUNT,
};

/* Of these all take any but a line. */
#define BY_NAMES "function, object, process, thread, container, service or cgroup"

const char *by_name(enum view_by by);
/* As of "2 functions". */
const char *by_name_of(enum view_by by, size_t count);
bool by_parse(const char *text, enum view_by *ret_by);
/* A stack has several such rows: those that call others, and one that is its leaf's. */
bool by_is_frame(enum view_by by);

#endif /* STACKTAP_VIEW_BY_H */
