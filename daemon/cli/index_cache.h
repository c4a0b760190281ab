/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of debug files, so that each is made once: in the user's cache directory, by build-id, 256 MiB at most. What goes
 * wrong with them costs time, and nothing else.
 */
#ifndef STACKTAP_CLI_INDEX_CACHE_H
#define STACKTAP_CLI_INDEX_CACHE_H

#include "cli/debugfile.h"

/* After parser_open_lines(): gives it the index of the file, if there is one. */
void index_cache_load(struct parser *parser, const struct debugfile *file);
/* After questions: keeps the one that they needed, if it is new. */
void index_cache_save(struct parser *parser, const struct debugfile *file);

#endif /* STACKTAP_CLI_INDEX_CACHE_H */
