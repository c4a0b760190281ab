/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stacktap annotate': a function's source lines, or its instructions, with the samples of each. Files are
 * found by build-id as for `symbolize', and read in the parser.
 */
#ifndef STACKTAP_CLI_ANNOTATE_H
#define STACKTAP_CLI_ANNOTATE_H

#include "base/arena.h"
#include "base/fail.h"
#include "cli/debugfile.h"
#include "view/hits.h"
#include "view/report.h"

enum annotate_mode {
	ANNOTATE_SOURCE,	/* lines of source files */
	ANNOTATE_CODE,		/* instructions */
	ANNOTATE_LINES,		/* lines whose source is not here, nor the code */
};

struct annotate_options {
	const char *path, *function, *object;
	struct selection selection;
	struct debugfile_places places;
	char *default_directory;
	const char **source_directories;
	size_t source_directory_count;
	double least;			/* percent */
	bool use_json, without_source, is_intel, with_bytes, is_wide;
};

/* Where a hit is in the source: file NULL: unknown. */
struct annotate_place {
	const char *file;
	uint64_t line, start_line;
};

struct annotate_row {
	uint64_t address, line;		/* of code; of source */
	const char *file;		/* whose line an instruction is of; NULL: unknown */
	const char *text;		/* NULL: not here */
	const char *target;		/* what is jumped to or called, if it is another function; or NULL */
	uint8_t bytes[INSTRUCTION_MAX], size;
	bool is_after_gap;		/* something was left out in front of it */
	uint64_t samples, weight;
	uint32_t first_hit;		/* whose samples these are: a number in the chosen ones + 1, 0: none; see next_hit */
	struct report_error error;	/* of its share of the function */
};

/* A stretch of one source file, or of code. */
struct annotate_section {
	const char *file;		/* where the source was found; of code: NULL */
	uint64_t start, size;		/* of code */
	uint64_t weight;
	size_t first, count;		/* in the rows */
};

struct annotation {
	const struct annotate_options *options;
	struct hits hits;
	const struct hit **chosen;	/* of one function and event */
	struct annotate_place *places;	/* of each chosen hit */
	uint32_t *next_hit;		/* of each chosen hit the next one of its row, as that's first one; 0: none */
	size_t count;
	const struct hit_event *event;
	uint64_t samples, weight, inlined;
	struct report_error error;	/* of its share of all */
	uint64_t outside;		/* samples in none of the rows */
	struct arena arena;
	struct parser *parser;
	struct debuginfod *debuginfod;	/* NULL: no server is asked */
	struct debugfile_finder *finder;
	struct debugfile code, debug;	/* object NULL: not found */
	enum annotate_mode mode;
	struct buffer sections, rows;	/* struct annotate_section, struct annotate_row */
	char note[512];			/* why not more, or what is in doubt; may be empty */
};

/* @debuginfod: taken; NULL: no server is asked. -ENOMEM; annotation_done() in any case. */
int annotation_init(struct annotation *annotation, const struct annotate_options *options,
		    struct debuginfod *debuginfod);
void annotation_done(struct annotation *annotation);
/*
 * Chooses among the hits, which are loaded, and makes the sections. 0, or -errno and *ret_error is a sentence;
 * @recording is how that calls what was read.
 */
int annotation_make(struct annotation *annotation, const char *recording, char *ret_error,
		    size_t size);

/* Each: 0, -E2BIG when memory is used up. */
/* Finds the files, by the first chosen hit. */
/* Can the code that it was in be in a file? Not what a runtime made, nor what the kernel did. */
bool annotate_has_file(const struct hit *hit);
/* Of a kernel module, whose file has lines and no code that could be shown. */
bool annotate_is_module(const struct hit *hit);
void annotate_find_files(struct annotation *annotation);
/* Where each hit is, as the recording says, else the debug file. */
int annotate_find_places(struct annotation *annotation);
/* Sections of source; no section has a text: *ret_found is false. */
int annotate_source(struct annotation *annotation, bool *ret_found);
/* Sections of code; -ENOENT, and a note, when there is none to be had. */
int annotate_code(struct annotation *annotation);

/* The errors of the function's share and of its rows', where times and memory are there; of those that are there. */
void annotate_errors(struct annotation *annotation);

/* The address of a hit in @file; false: it cannot be told. */
bool annotate_address(const struct debugfile *file, const struct hit *hit, uint64_t *ret_address);
typedef int annotate_each_frame(struct annotation *annotation, void *ctx, uint32_t i, const struct lines_frame *frames,
				uint32_t count, const char *strings);

/*
 * Calls @each with the frames of every one of the sorted @addresses, by the debug file. 0 or -errno. What a package
 * of split DWARF breaks costs inlined functions alone, and a note.
 */
int annotate_frames(struct annotation *annotation, const uint64_t *addresses, uint32_t count,
		    annotate_each_frame *each, void *ctx);
/* Clean text that lasts as long as the annotation; NULL: no memory. */
const char *annotate_text(struct annotation *annotation, const char *text);

#define annotate_note(annotation, ...) fail_note((annotation)->note, sizeof((annotation)->note), __VA_ARGS__)

void annotate_print(const struct annotation *annotation, FILE *out);
void annotate_print_json(const struct annotation *annotation);

static inline double annotate_percent(const struct annotation *annotation, uint64_t weight)
{
	return annotation->weight ? 100.0 * (double)weight / (double)annotation->weight : 0;
}

static inline struct annotate_row *annotate_row(const struct annotation *annotation, size_t i)
{
	return (struct annotate_row *)(void *)annotation->rows.data + i;
}

static inline size_t annotate_row_count(const struct annotation *annotation)
{
	return annotation->rows.size / sizeof(struct annotate_row);
}

static inline struct annotate_section *annotate_section(const struct annotation *annotation, size_t i)
{
	return (struct annotate_section *)(void *)annotation->sections.data + i;
}

static inline size_t annotate_section_count(const struct annotation *annotation)
{
	return annotation->sections.size / sizeof(struct annotate_section);
}

#endif /* STACKTAP_CLI_ANNOTATE_H */
