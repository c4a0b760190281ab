/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An unwind table on its way to the module: the vDSO's from our own memory, that of a file from the cache on disk, or
 * of the parser and into the cache.
 */
#pragma once

#include "resolve/tables_ops.h"

enum { COMPILED_LATER = 1 };	/* nobody has time for it just now, which is no error that a file may have */

struct compiled {
	const void *data;	/* NULL: none */
	size_t bytes;
	bool is_mapped;		/* the parser's: else from malloc() */
	uint64_t rows;		/* set by whoever has checked it */
};

/*
 * @tgid maps the object. The bytes are the caller's, not checked, and no pool is charged. COMPILED_LATER; -errno: of opening
 * the file or of the cache; of the parser see parser_table().
 */
int compiled_make(const struct tables_ops *ops, struct object *object, uint32_t tgid, struct compiled *ret_compiled);
void compiled_free(struct compiled *compiled);
