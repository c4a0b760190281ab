/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .dwo files of split DWARF that no packager has packed: the parser says which it wants for some addresses, and what
 * their compiler was told that they are called. They are opened here, as many at a time as it takes.
 */
#ifndef STACKTAP_CLI_DWO_FILES_H
#define STACKTAP_CLI_DWO_FILES_H

#include "cli/debugfile.h"

enum { DWO_ABSENT_SLOTS = 1024 };

/* Why one is not had: of several files that might have been it, what is the furthest. */
enum dwo_missing { DWO_NOT_MISSING, DWO_ABSENT, DWO_UNREADABLE, DWO_OTHER_BUILD, DWO_LATE };

struct dwo_files {
	struct parser *parser;
	const struct debugfile_finder *finder;
	const struct debugfile *file;	/* whose units are split */
	bool is_wanted;			/* an answer lacked what is in them */
	bool is_off;			/* they are not looked for */
	bool any;			/* was given */
	uint64_t deadline;		/* of all that is done for them */
	uint32_t without;		/* addresses whose file was not found */
	enum dwo_missing why;		/* of the first of these files, */
	char missing[256];		/* which is called so, as far as there is room */
	uint64_t absent[DWO_ABSENT_SLOTS];	/* names that lead to nothing, by their hashes */
};

/* As parser_lines(), of the first *count addresses; of how many is then there, at least one. */
int dwo_files_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer);
/* After a failure: the next question is one of another parser, which is given none. */
void dwo_files_drop(struct dwo_files *files);
/* What is missing, in words; of no bytes: nothing is. */
void dwo_files_note(const struct dwo_files *files, size_t size, char *ret_note);

#endif /* STACKTAP_CLI_DWO_FILES_H */
