// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a message of an OTLP file that is named later: no crash, no hang, all memory comes back, and what
 * is written is a message again, whose frames have names where there were none.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/pool.h"
#include "view/rename.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Most Locations, some with inlined functions. */
static int name_all(struct census *census)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < census->locations.count; i++) {
		const struct recorded_frame frame = {
			.name = texts_intern(&census->texts, i & 1 ? "odd" : "even"),
			.system_name = texts_intern(&census->texts, "_Zfoo"),
			.file = texts_intern(&census->texts, i & 4 ? "a.c" : ""),
			.line = i, .column = i & 7, .start_line = i & 3,
		};

		if (!frame.name || !frame.system_name || !frame.file)
			return -E2BIG;
		for (uint32_t k = 0; !err && k < i % 4; k++)
			err = census_name(census, census_location(census, i), &frame);
	}
	return err;
}

static void rename_once(struct census *census, const uint8_t *data, size_t size)
{
	struct rename_counts counts = { 0 }, again = { 0 };
	struct buffer output, twice;
	struct census other;

	buffer_init(&output, POOL_REPORT);
	buffer_init(&twice, POOL_REPORT);
	census_init(&other);
	if (!rename_message(census, data, size, &output, &counts)) {
		if (counts.named_before > counts.named_after || counts.named_after > counts.frames ||
		    census_add(&other, output.data, output.size) ||
		    other.samples != census->samples || other.objects.count != census->objects.count)
			abort();
		if (rename_message(census, output.data, output.size, &twice, &again) ||
		    again.named_before != counts.named_after)
			abort();
	}
	census_free(&other);
	buffer_free(&output);
	buffer_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct census census;

	census_init(&census);
	if (!census_add(&census, data, size) && !name_all(&census))
		rename_once(&census, data, size);
	census_free(&census);
	if (atomic_load(&pool_get(POOL_REPORT)->used))
		abort();
	return 0;
}
