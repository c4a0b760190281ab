/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .dwo files of split DWARF that no packager has packed: the parser says which it wants for some addresses, and what
 * their compiler was told that they are called. Who asks knows where to look for them; they are given to the parser here, as
 * many at a time as it takes.
 */
#ifndef STACKTAP_HELPER_DWO_FILES_H
#define STACKTAP_HELPER_DWO_FILES_H

#include <sys/stat.h>

#include "helper/parser.h"

enum { DWO_ABSENT_SLOTS = 1024 };

/* Why one is not had: of several files that might have been it, what is the furthest. */
enum dwo_missing { DWO_NOT_MISSING, DWO_ABSENT, DWO_UNREADABLE, DWO_OTHER_BUILD, DWO_LATE };

/* One that is looked for; what is found is it if the parser finds its id. */
struct dwo_look;

struct dwo_files {
	struct parser *parser;
	const struct object *object;	/* whose units are split */
	/* what befalls the parser while it has .dwo files is laid to this, so that the program is read again without them */
	const struct object *suspect;
	/* Gives what is in one place after the other that @names may lead to, until dwo_give() says something else than 0. */
	int (*look)(const void *ctx, const struct dwarf_dwo_names *names, struct dwo_look *look);
	const void *ctx;
	uint32_t question_ms;		/* for one question, */
	uint32_t dwos_ms;		/* for all that is done for them, from the first on, */
	uint64_t end;			/* and for the lines as well, CLOCK_MONOTONIC ns */
	bool is_wanted;			/* an answer lacked what is in them */
	bool is_off;			/* they are not looked for */
	bool any;			/* was given */
	uint64_t deadline;		/* of all that is done for them */
	uint32_t given;
	uint32_t without;		/* addresses whose file was not found */
	enum dwo_missing why;		/* of the first of these files, */
	char missing[256];		/* which is called so, as far as there is room */
	uint64_t *absent;		/* DWO_ABSENT_SLOTS names that lead to nothing, by their hashes */
	uint64_t seed;			/* of these */
};

/* As parser_lines(), of the first *count addresses; of how many is then there, at least one. */
int dwo_files_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer);
/* After a failure: the next question is one of another parser, which is given none. */
void dwo_files_drop(struct dwo_files *files);

/*
 * What is at @path, @fd with @st, or why it cannot be opened, which stays the caller's: 1, it was taken; 0, it is not the one;
 * others: it is no use to go on.
 */
int dwo_give(struct dwo_look *look, int fd, const struct stat *st, const char *path);
/* Why what might have been it is not: 0. */
int dwo_miss(struct dwo_look *look, enum dwo_missing why);
/* Where the compiler wrote it, an absolute path. False: that is not said, or too long. */
bool dwo_path(const struct dwarf_dwo_names *names, char ret_path[static PATH_MAX]);
/*
 * Where it may be below some directory, in ways from 0 on: as where it was compiled, as relative to that, by its name alone.
 * Leads nowhere but down. False: there is none of this kind, or it is too long.
 */
enum { DWO_WAYS = 3 };
bool dwo_path_below(const struct dwarf_dwo_names *names, unsigned int way, char ret_path[static PATH_MAX]);

#endif /* STACKTAP_HELPER_DWO_FILES_H */
