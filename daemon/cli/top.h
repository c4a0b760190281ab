/* SPDX-License-Identifier: Apache-2.0 */
/* `stacktap top': what it was asked for and what it shows. */
#ifndef STACKTAP_CLI_TOP_H
#define STACKTAP_CLI_TOP_H

#include "cli/name_filter.h"
#include "cli/record.h"
#include "cli/select.h"
#include "cli/sysroot.h"
#include "cli/targets.h"
#include "cli/title.h"
#include "cli/top_cost.h"
#include "pipeline/pipeline.h"
#include "service/host.h"
#include "view/browse.h"
#include "view/live.h"

enum { TOP_DELAY_MIN_MS = 100 };

struct top {
	struct record_options options;
	uint64_t delay_ms, look_back_ms, iterations, limit;
	struct browse browse;
	bool is_batch, use_json, has_limit;
	struct selection selection;	/* of what is sampled */
	uint64_t zero;			/* what is older counts no more */
	char notice[256];		/* on the screen, until the next key; may be empty */
	struct name_filter filter;
	struct environment environment;
	struct host_resource resource;
	struct targets targets;
	struct pipeline *pipeline;
	struct live *live;
	struct top_cost cost;
	int owner_width, id_width;	/* of their columns, which grow with what they had to show */
	char *subject_owner, *subject_name, *subject_file;	/* subject's */
	struct live_subject subject;	/* of BROWSE_CALLS */
	char *code;			/* of BROWSE_CODE: lines, each ended by 0 */
	size_t code_size, code_lines;
	char code_of[TITLE_BYTES];	/* whose it is */
	struct sysroot_process looks;	/* who looks for that into roots of processes; NULL: not yet */
	int signals;
};

extern const char *const top_groups[LIVE_GROUP_COUNT];

/* CLI_OK, or the exit code plus one when there is nothing to run. */
int top_parse(int argc, char **argv, struct top *top);

/* The table that the view needs, of now: CLI_OK, or says what is wrong. */
int top_build(struct top *top, struct live_table *ret_table);
/* Since when messages count. */
uint64_t top_from(const struct top *top);
bool top_matches(const struct top *top, const struct live_row *row);

void top_print_header(FILE *out, const struct top *top, const struct live_table *table);
/* Its columns have room for all rows. */
void top_fit(struct top *top, const struct live_table *table);
void top_print_heading(FILE *out, const struct top *top);
void top_print_row(FILE *out, const struct top *top, const struct live_table *table,
		   const struct live_row *row);
void top_print_text(FILE *out, const struct top *top, const struct live_table *table);
void top_print_json(const struct top *top, const struct live_table *table);

/* Until a key, a signal, the last iteration or the end of what -p and -t name. */
int top_screen_loop(struct top *top);

/* The code of a function in top->code: 0, or -errno and a notice. */
int top_make_code(struct top *top, const struct live_row *row);
void top_free_code(struct top *top);
void top_print_code(FILE *out, const struct top *top, size_t first, size_t end);	/* lines */
/* Where a line of it has its share. */
enum { TOP_CODE_SHARE = 1, TOP_SHARE_COLUMNS = 8 };
size_t top_hottest_line(const struct top *top);
/* The percentage that begins at a byte of a line; below 0: there is none. */
double top_share_at(const char *line, size_t at);

#endif /* STACKTAP_CLI_TOP_H */
