/* SPDX-License-Identifier: Apache-2.0 */
/* What daemon/view/page/ holds, as it is, and pages made of it. */
#ifndef STACKTAP_VIEW_PAGE_FILES_H
#define STACKTAP_VIEW_PAGE_FILES_H

#include "base/macro.h"

struct page_file {
	const char *data, *end;
};

/* The last one of each has no data. */
struct page_files {
	struct page_file html;
	const struct page_file *styles, *scripts;
};

extern const struct page_files page_files_flame;	/* one file that loads nothing */
extern const struct page_files page_files_site;		/* of a server, for its root */

/*
 * The HTML with what it names: @TITLE@, @STYLE@, @CODE_@, @DATA_@, which is @put_data's, and the hashes of style and
 * script, by which its policy allows them: @SHA_S@, @SHA_J@.
 */
void page_files_fill(const struct page_files *files, const char *title,
		     void (*put_data)(void *ctx, FILE *file), void *ctx, FILE *file);

#endif /* STACKTAP_VIEW_PAGE_FILES_H */
