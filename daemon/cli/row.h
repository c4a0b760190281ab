/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of `report --by` or of `diff` is called, in text and in JSON. */
#ifndef STACKTAP_CLI_ROW_H
#define STACKTAP_CLI_ROW_H

#include "base/json.h"
#include "view/diff.h"

/* The rest of a line that has @used columns. */
void row_print(enum view_by by, const struct diff_row *row, int used);
/* Members of the object that is open. */
void row_put(struct json *json, enum view_by by, const struct diff_row *row);

#endif /* STACKTAP_CLI_ROW_H */
