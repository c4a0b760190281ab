/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as one HTML page that shows it: it loads nothing, and may not. Its own script and style are the only ones
 * that its policy allows to run, by their hashes; names of functions are foreign, and are data to it.
 */
#ifndef STACKTAP_VIEW_PAGE_H
#define STACKTAP_VIEW_PAGE_H

#include "view/diff.h"

/* Rounds the times of the model to what the page shows. Errors of writing are @file's. -E2BIG */
int page_write(struct model *model, const char *title, FILE *file);
/* Of a pair, by what @diff found in it: red is what grew, blue what shrank. */
int page_write_diff(struct model *model, const struct diff *diff, const char *title, FILE *file);
/* A static picture of one event's tree, for mail. Makes the sums of the model. -E2BIG */
int svg_write(struct model *model, uint32_t event, const char *title, FILE *file);
int svg_write_diff(struct model *model, const struct diff *diff, const char *title, FILE *file);

#endif /* STACKTAP_VIEW_PAGE_H */
