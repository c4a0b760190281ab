/* SPDX-License-Identifier: Apache-2.0 */
/* What daemon/view/page/ holds, as it is. */
#ifndef STACKTAP_VIEW_PAGE_FILES_H
#define STACKTAP_VIEW_PAGE_FILES_H

#include "base/macro.h"

struct page_file {
	const char *data, *end;
};

extern const struct page_file page_html, page_css;
extern const struct page_file page_scripts[];	/* in this order; the last one has no data */

#endif /* STACKTAP_VIEW_PAGE_FILES_H */
