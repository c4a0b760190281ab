// SPDX-License-Identifier: Apache-2.0
#include "resolve/lines.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "resolve/objects.h"

enum { LEAST_MS = 50 };	/* less is not begun with */

struct wanted {
	uint64_t address;
	struct location *location;
};

static int compare_addresses(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void put_off(const struct wanted *wanted, uint32_t count, struct lines_stats *stats)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&wanted[i].location->is_put_off, true, memory_order_relaxed);
	stats->put_off += count;
}

/* The outermost function keeps the name that symbols gave it. */
static const char *name_of(const struct location *location, const struct lines_answer *answer,
			   const struct lines_frame *frame, bool is_outermost)
{
	return is_outermost && location->line_count ? location->lines[0].function->system_name :
						      answer->strings + frame->name;
}

static int take_frames(struct names *names, struct location *location,
		       const struct lines_answer *answer, const struct lines_frame *frames,
		       uint32_t count, size_t *budget)
{
	struct line lines[LINES_FRAMES_MAX];
	uint32_t made = 0;
	int r = 0;

	for (; made < count && !r; made += !r) {
		const struct lines_frame *frame = &frames[made];
		const char *file = answer->strings + frame->file;

		lines[made] = (struct line){ .line = frame->line, .column = frame->column };
		r = names_get_at(names, name_of(location, answer, frame, made + 1 == count),
				 file[0] ? file : NULL, frame->start_line, budget, &lines[made].function);
	}
	if (!r)
		return location_set_lines(location, lines, count);
	while (made)
		function_unref(lines[--made].function);
	return r;
}

static void take(struct names *names, const struct wanted *wanted, uint32_t count,
		 const struct lines_answer *answer, size_t *budget, struct lines_stats *stats)
{
	const struct lines_frame *frames = answer->frames;
	int r;

	for (uint32_t i = 0; i < count; frames += answer->counts[i++]) {
		const uint32_t n = answer->counts[i];

		/* a name alone is what symbols have said already */
		if (!n || (!frames[n - 1].file && n == 1))
			continue;
		r = take_frames(names, wanted[i].location, answer, frames, n, budget);
		stats->with_lines += !r;
		stats->with_inlined += !r && n > 1;
		if (r == -EAGAIN)
			put_off(wanted + i, 1, stats);
	}
}

static int ask(struct parser *parser, struct names *names, const struct lines_source *source,
	       const struct wanted *wanted, uint32_t count, size_t *budget, struct lines_stats *stats)
{
	const uint64_t now = clock_monotonic();
	struct lines_answer *answer;
	uint64_t *addresses;
	int r = -ENOMEM;

	if (source->deadline < now + LEAST_MS * NSEC_PER_MSEC)
		return -ETIME;
	answer = malloc(sizeof(*answer));
	addresses = malloc(count * sizeof(*addresses));
	if (answer && addresses) {
		for (uint32_t i = 0; i < count; i++)
			addresses[i] = wanted[i].address;
		r = parser_lines_now(parser, source->object, source->fd, addresses, count,
				     (uint32_t)((source->deadline - now) / NSEC_PER_MSEC), answer);
	}
	if (r == 0) {
		take(names, wanted, count, answer, budget, stats);
		lines_answer_free(answer);
	}
	free(answer);
	free(addresses);
	return r;
}

void lines_resolve(struct parser *parser, struct names *names, const struct lines_source *source,
		   struct location **locations, size_t count, size_t *budget,
		   struct lines_stats *stats)
{
	_cleanup_free_ struct wanted *wanted = NULL;
	int r = 0;

	if (source->fd < 0 || !source->object || source->object->has_no_lines)
		return;
	wanted = malloc(count * sizeof(*wanted));
	if (!wanted)
		return;
	for (size_t i = 0; i < count; i++)
		wanted[i] = (struct wanted){ locations[i]->address - locations[i]->is_return, locations[i] };
	qsort(wanted, count, sizeof(*wanted), compare_addresses);
	for (size_t i = 0, n; i < count; i += n) {
		n = min_of(count - i, (size_t)LINES_ADDRESSES_MAX);
		if (!r)
			r = ask(parser, names, source, wanted + i, (uint32_t)n, budget, stats);
		/* what takes long and what fails is different: the one begins anew with more time */
		if (r == -ETIME || r == -EDQUOT || r == -EAGAIN || r == -ENOMEM)
			put_off(wanted + i, (uint32_t)n, stats);
	}
	if (r == 0 || r == -ETIME || r == -EDQUOT || r == -EAGAIN || r == -ENOMEM)
		return;
	log_debug("%s: no source lines: %s", source->object->path,
		  r == -EFBIG ? "its compressed debug sections need more memory than the parser may take" : strerror(-r));
	source->object->has_no_lines = true;
	stats->without++;
}
