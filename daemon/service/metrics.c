// SPDX-License-Identifier: Apache-2.0
#include "service/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#include <stacktap/version.h>

/* A rule has what its author wrote, but no line's end. */
static void print_escaped(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', stream);
		fputc(*text, stream);
	}
}

static void print_sample(FILE *stream, const char *family, const struct snapshot *snapshot, enum counter_id id,
			 unsigned int instance)
{
	const struct counter *counter = &counters[id];
	const char *label = snapshot_label(snapshot, counter->group, instance);
	uint64_t value = snapshot_counter(snapshot, id, instance);

	fprintf(stream, "%s%s", family, counter->kind == KIND_SUM ? "_total" : "");
	if (label) {
		fprintf(stream, "{%s=\"", counter_objects[counter->group].label);
		print_escaped(stream, label);
		fputs("\"}", stream);
	}
	if (strcmp(counter->unit, "ns"))
		fprintf(stream, " %" PRIu64 "\n", value);
	else
		fprintf(stream, " %" PRIu64 ".%09" PRIu64 "\n", (uint64_t)(value / NSEC_PER_SEC),
			(uint64_t)(value % NSEC_PER_SEC));
}

static void print_family(FILE *stream, const struct snapshot *snapshot, enum counter_id id)
{
	const struct counter *counter = &counters[id];
	const char *unit = counter_metric_unit(id);
	char family[COUNTER_METRIC_MAX];

	counter_metric(id, family);
	fprintf(stream, "# TYPE %s %s\n", family, counter->kind == KIND_SUM ? "counter" : "gauge");
	if (unit)
		fprintf(stream, "# UNIT %s %s\n", family, unit);
	fprintf(stream, "# HELP %s %s\n", family, counter->meaning);
	for (unsigned int i = 0; i < snapshot_instances(snapshot, counter->group); i++)
		print_sample(stream, family, snapshot, id, i);
}

void metrics_print(FILE *stream, const struct snapshot *snapshot)
{
	fputs("# TYPE stacktap info\n# HELP stacktap the daemon's version\n"
	      "stacktap_info{version=\"" STACKTAP_VERSION "\"} 1\n", stream);
	for (unsigned int id = COUNTER_NONE + 1; id < COUNTER_COUNT; id++)
		if (counters[id].kind != KIND_ID && snapshot_has(snapshot, counters[id].group))
			print_family(stream, snapshot, id);
	fputs("# EOF\n", stream);
}
