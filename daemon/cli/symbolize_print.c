// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/symbolize.h"

static int compare(const void *a, const void *b)
{
	const struct naming_outcome *x = a, *y = b;

	if (x->object->samples != y->object->samples)
		return x->object->samples > y->object->samples ? -1 : 1;
	return strcmp(x->object->path, y->object->path);
}

void symbolize_sort(struct naming *naming)
{
	qsort(naming->outcomes, naming->outcome_count, sizeof(*naming->outcomes), compare);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void say_fetched(const struct debuginfod_stats *stats, FILE *file)
{
	const uint64_t failed = stats->unreachable + stats->timed_out + stats->failed;

	fprintf(file, "debuginfod: %" PRIu64 " debug files fetched (%.1f MB), %" PRIu64
		" kept from before, %" PRIu64 " not there, %" PRIu64 " too large, %" PRIu64 " failed\n",
		stats->fetched, (double)stats->bytes / 1e6, stats->from_cache, stats->absent,
		stats->too_large, failed);
}

void symbolize_print(const struct naming *naming, const struct rename_counts *counts, FILE *file)
{
	for (uint32_t i = 0; i < naming->outcome_count; i++) {
		const struct naming_outcome *outcome = &naming->outcomes[i];

		fprintf(file, "%6u of %u found, %u with lines  %s\n", outcome->found,
			outcome->wanted, outcome->with_lines,
			outcome->object->path[0] ? outcome->object->path : "[no mapping]");
		if (outcome->file)
			fprintf(file, "        by %s\n", outcome->file);
		if (outcome->note[0])
			fprintf(file, "        %s\n", outcome->note);
	}
	if (counts->left)
		fprintf(file, "%" PRIu64
			" messages would be too long with names and stay as they are\n", counts->left);
	if (naming->debuginfod)
		say_fetched(debuginfod_stats(naming->debuginfod), file);
	fprintf(file, "%" PRIu64 " frames of all samples: %.1f %% had names, %.1f %% have\n",
		counts->frames, percent(counts->named_before, counts->frames),
		percent(counts->named_after, counts->frames));
}

void symbolize_print_missing(const struct naming *naming, FILE *file)
{
	for (uint32_t i = 0; naming->debuginfod && i < naming->outcome_count; i++) {
		const struct naming_outcome *outcome = &naming->outcomes[i];

		if (outcome->note[0])
			fprintf(file, "stacktap: %s: %s\n", outcome->object->path[0] ? outcome->object->path :
				"[no mapping]", outcome->note);
	}
}

static void say_fetched_json(const struct debuginfod_stats *stats, struct json *json)
{
	json_object(json, "debuginfod");
	json_u64(json, "fetched", stats->fetched);
	json_u64(json, "bytes", stats->bytes);
	json_u64(json, "from_cache", stats->from_cache);
	json_u64(json, "absent", stats->absent);
	json_u64(json, "too_large", stats->too_large);
	json_u64(json, "unreachable", stats->unreachable);
	json_u64(json, "timed_out", stats->timed_out);
	json_u64(json, "failed", stats->failed);
	json_end(json);
}

void symbolize_print_json(const struct naming *naming, const struct rename_counts *counts, const char *output,
			  bool is_cut)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", output);
	json_array(&json, "objects");
	for (uint32_t i = 0; i < naming->outcome_count; i++) {
		const struct naming_outcome *outcome = &naming->outcomes[i];
		const struct recorded_object *object = outcome->object;

		json_object(&json, NULL);
		json_string(&json, "path", object->path[0] ? object->path : NULL);
		json_string(&json, "build_id", object->build_id[0] ? object->build_id : NULL);
		json_string(&json, "htlhash", object->htlhash[0] ? object->htlhash : NULL);
		json_string(&json, "file", outcome->file);
		json_string(&json, "note", outcome->note[0] ? outcome->note : NULL);
		json_u64(&json, "wanted", outcome->wanted);
		json_u64(&json, "found", outcome->found);
		json_u64(&json, "with_lines", outcome->with_lines);
		json_end(&json);
	}
	json_end(&json);
	if (naming->debuginfod)
		say_fetched_json(debuginfod_stats(naming->debuginfod), &json);
	json_u64(&json, "frames", counts->frames);
	json_u64(&json, "named_before", counts->named_before);
	json_u64(&json, "named_after", counts->named_after);
	json_u64(&json, "messages_left", counts->left);
	json_bool(&json, "cut", is_cut);
	json_end(&json);
}
