/* SPDX-License-Identifier: Apache-2.0 */
/* A model in the formats of others. */
#ifndef STACKTAP_VIEW_CONVERT_H
#define STACKTAP_VIEW_CONVERT_H

#include "view/model.h"

struct convert_options {
	uint32_t event;		/* the one that is converted */
	bool by_weight;		/* where there is one value alone: weight, not samples */
	const char *name;	/* of the recording */
};

struct convert_format {
	const char *name;
	const char *endings[4];	/* of files that are called like this; NULL ends them */
	const char *loss;	/* what a recording has and this has not */
	struct model_options model;	/* how it is to be loaded; its selection is the caller's */
	bool is_binary;
	/* Errors of writing are @file's. -E2BIG */
	int (*write)(struct model *model, const struct convert_options *options, FILE *file);
};

extern const struct convert_format convert_formats[];	/* the last one has no name */

const struct convert_format *convert_by_name(const char *name);	/* NULL: there is none */
const struct convert_format *convert_by_path(const char *path);	/* by its ending */
bool convert_ends_in(const char *path, const char *ending);	/* with something in front of it */

/* What convert_formats has. */
int pprof_write(struct model *model, const struct convert_options *options, FILE *file);
int folded_write(struct model *model, const struct convert_options *options, FILE *file);
int speedscope_write(struct model *model, const struct convert_options *options, FILE *file);
int firefox_write(struct model *model, const struct convert_options *options, FILE *file);
int perf_script_write(struct model *model, const struct convert_options *options, FILE *file);

#endif /* STACKTAP_VIEW_CONVERT_H */
