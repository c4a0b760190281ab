/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of `report --by` or of `diff` is called, in text and in JSON. */
#ifndef STACKTAP_CLI_ROW_H
#define STACKTAP_CLI_ROW_H

#include "base/json.h"
#include "cli/name_filter.h"
#include "view/diff.h"

/* The rest of a line that has @used columns. */
void row_print(enum view_by by, const struct diff_row *row, int used);
/* Has it a name that matches? That of a line is FILE:LINE; its functions are those of its frames. */
bool row_is_wanted(const struct name_filter *filter, const struct diff_row *row);
/* The same of a frame, by its function and its object: a focus_test, whose context is the filter. */
bool row_is_wanted_frame(const void *filter, const struct model_frame *frame);
/* Members of the object that is open. */
void row_put(struct json *json, enum view_by by, const struct diff_row *row);

#endif /* STACKTAP_CLI_ROW_H */
