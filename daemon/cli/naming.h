/* SPDX-License-Identifier: Apache-2.0 */
/* Names, lines and inlined functions for what a recording has no names of, from debug files. */
#ifndef STACKTAP_CLI_NAMING_H
#define STACKTAP_CLI_NAMING_H

#include "cli/debugfile.h"

/* What became of an object. */
struct naming_outcome {
	const struct recorded_object *object;
	char *file;			/* NULL: none */
	char note[sizeof(((struct debugfile *)NULL)->note)];
	uint32_t wanted;		/* Locations without a name, or with one and without a line */
	uint32_t matched;		/* of these, with a function in the file */
	uint32_t found, with_lines;	/* of these, that get what they lacked */
	uint32_t others, absent, unsaid; /* of a module: with another function in its file, with none there, with none recorded */
	bool is_moved;			/* a module: its code was not where its file has it */
};

struct naming {
	struct census census;		/* of the recording */
	struct parser *parser;
	struct naming_plain *plain;	/* names that were asked for, by address */
	struct debugfile_finder *finder;
	struct debuginfod *debuginfod;	/* NULL: no server is asked */
	struct naming_outcome *outcomes;
	uint32_t outcome_count;
	uint64_t began;
};

/* Says what is wrong; naming_close() is due all the same. */
int naming_open(struct naming *naming, const struct debugfile_places *places);
void naming_close(struct naming *naming);

/* What a negative errno of parser_lines() and the like says of a file. */
const char *naming_failure(int error);

/* Puts them into the census, which has all of the recording at @path. Says what is wrong. */
int naming_run(struct naming *naming, const char *path);

#endif /* STACKTAP_CLI_NAMING_H */
