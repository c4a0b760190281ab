/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .dwo files of split DWARF that no packager has packed: the parser says which it wants for some addresses, and what
 * their compiler was told that they are called. They are opened here, as many at a time as it takes.
 */
#ifndef STACKTAP_CLI_DWO_FILES_H
#define STACKTAP_CLI_DWO_FILES_H

#include "cli/debugfile.h"

struct dwo_files {
	struct parser *parser;
	const struct debugfile_finder *finder;
	const struct debugfile *file;	/* whose units are split */
	bool is_wanted;			/* an answer lacked what is in them */
	bool is_off;			/* they are not looked for */
	bool any;			/* was given */
	uint32_t without;		/* addresses whose file was not found */
	char missing[256];		/* the first of these files, as far as there is room */
};

/* As parser_lines(), of the first *count addresses; of how many is then there, at least one. */
int dwo_files_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer);
/* What is missing, in words; of no bytes: nothing is. */
void dwo_files_note(const struct dwo_files *files, size_t size, char *ret_note);

#endif /* STACKTAP_CLI_DWO_FILES_H */
