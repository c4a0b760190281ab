// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a message of an OTLP file: no crash, no hang, and all memory comes back. */
#include <stdint.h>
#include <stdlib.h>

#include "base/pool.h"
#include "view/report_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct report *report)
{
	uint64_t self;

	for (size_t i = 0; i < report->event_count; i++) {
		const struct report_event *event = &report->events[i];

		for (size_t k = 0; k < event->process_count; k++) {
			const struct report_process *process = &event->processes[k];

			self = 0;
			for (size_t m = 0; m < process->function_count; m++) {
				const struct report_function *function = &process->functions[m];

				if (!function->name[0] || function->self > function->total ||
				    __builtin_add_overflow(self, function->self, &self))
					self = UINT64_MAX;
			}
			if (self != UINT64_MAX && self > process->weight)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report_builder *builder;
	struct report *report;
	int err;

	if (report_builder_new(size & 1, &builder))
		return 0;
	/* a second message meets the tables of the first; a bad one ends the report half added */
	err = report_builder_add(builder, data, size);
	if (!err)
		err = report_builder_add(builder, data, size);
	if (!report_builder_finish(builder, false, &report)) {
		if (!err)
			look_at(report);
		report_free(report);
	}
	report_builder_free(builder);
	if (atomic_load(&pool_get(POOL_REPORT)->used))
		abort();
	return 0;
}
