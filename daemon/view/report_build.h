/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up messages to a report. Memory is charged to POOL_REPORT. */
#ifndef STACKTAP_VIEW_REPORT_BUILD_H
#define STACKTAP_VIEW_REPORT_BUILD_H

#include "view/report.h"

struct report_builder;

int report_builder_new(const struct selection *selection, enum report_detail detail,
		       struct report_builder **ret_builder);
void report_builder_free(struct report_builder *builder);	/* NULL is fine */
/* What adds messages to it. */
struct reader *report_builder_reader(struct report_builder *builder);
/*
 * What adds the same messages once more, for the errors of shares, which are not known without it; NULL: it is not
 * needed for them. -E2BIG
 */
int report_builder_again(struct report_builder *builder, struct reader **ret_reader);
/* Its memory is free, and the errors that need it are not known. */
void report_builder_give_up(struct report_builder *builder);
/* Sort what was added; the builder keeps nothing of it. */
int report_builder_finish(struct report_builder *builder, bool is_cut, struct report **ret_report);

#endif /* STACKTAP_VIEW_REPORT_BUILD_H */
