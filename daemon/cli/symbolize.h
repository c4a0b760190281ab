/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap symbolize' says of its work. */
#ifndef STACKTAP_CLI_SYMBOLIZE_H
#define STACKTAP_CLI_SYMBOLIZE_H

#include "cli/naming.h"
#include "view/rename.h"

/* Objects with the most samples first. */
void symbolize_sort(struct naming *naming);
void symbolize_print(const struct naming *naming, const struct rename_counts *counts, FILE *file);
/* Objects that lack something because of the debuginfod server, if one was asked. */
void symbolize_print_missing(const struct naming *naming, FILE *file);
/* On standard output. @is_cut: the recording is. */
void symbolize_print_json(const struct naming *naming, const struct rename_counts *counts, const char *output,
			  bool is_cut);

#endif /* STACKTAP_CLI_SYMBOLIZE_H */
