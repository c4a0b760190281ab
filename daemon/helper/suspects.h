/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the parser died of. One that it did so PARSER_DEATHS_MAX times is set apart: it is not asked about again. */
#ifndef STACKTAP_HELPER_SUSPECTS_H
#define STACKTAP_HELPER_SUSPECTS_H

#include "process/object.h"

enum {
	PARSER_DEATHS_MAX = 2,
	SUSPECTS_MAX = 64,
};

struct suspect {
	uint64_t dev, inode, size;
	int64_t ctime_ns;
	unsigned int blame;	/* percent of a death, summed up */
};

struct suspects {
	struct suspect all[SUSPECTS_MAX];
	size_t next;			/* to be forgotten for another one */
	char last_set_apart[256];	/* its path, and what the parser did; empty: none was */
};

/* Who is accused in place of a file: of what it leads to, which is not itself. */
enum suspect_part {
	SUSPECT_PARTS = 1,	/* other files with a part of its DWARF */
	SUSPECT_INDEX = 2,	/* of its DWARF, on disk */
};

enum { SUSPECT_PART_SHIFT = 62 };	/* where the size of a stand-in has it: no file is as large */

struct stand_in {
	struct object object;	/* has the path */
	char path[256];
};

/* For @object, which is borrowed by nothing. */
void stand_in_init(struct stand_in *stand_in, const struct object *object, enum suspect_part part);

bool suspects_has(const struct suspects *suspects, const struct object *object);
/* @error: how it ended, -EPIPE if by itself. @blame: percent, see helper_call() */
void suspects_accuse(struct suspects *suspects, const struct object *object, int error, unsigned int blame);
size_t suspects_set_apart(const struct suspects *suspects);

#endif /* STACKTAP_HELPER_SUSPECTS_H */
