// SPDX-License-Identifier: Apache-2.0
#include "export/cut.h"

#include <string.h>

#include "base/clock.h"
#include "export/cut_dictionary.h"
#include "export/cut_format.h"

#define TIMES_AT_ONCE 256u

/* What many samples have in common. */
struct shape {
	uint64_t kind;			/* profile, ends, marks */
	uint64_t comm[STACKTAP_COMM_LEN / sizeof(uint64_t)];
};

struct cutter {
	struct cut_dictionary dictionary;
	uint64_t file_bytes;		/* in cuts of this file */

	/* of one window in it */
	uint64_t window;
	uint8_t id[CUT_ID];
	uint32_t profiles;
	uint32_t first_sample, samples;	/* numbers as samples know them */
	uint64_t named;			/* when its drafts were looked through */
	uint64_t time;			/* the cut's last */
	struct shape shapes[CUT_SHAPES]; /* as their numbers say */
};

int cutter_new(const struct encode_options *options, struct cutter **ret_cutter)
{
	struct cutter *cutter = calloc(1, sizeof(*cutter));

	if (!cutter)
		return -ENOMEM;
	cut_dictionary_init(&cutter->dictionary, options);
	*ret_cutter = cutter;
	return 0;
}

void cutter_free(struct cutter *cutter)
{
	if (!cutter)
		return;
	cut_dictionary_free(&cutter->dictionary);
	free(cutter);
}

void cutter_begin(struct cutter *cutter)
{
	cutter->dictionary.epoch = 0;
}

static struct shape shape_of(const struct window_sample *sample)
{
	struct shape shape = {
		.kind = (uint64_t)sample->profile << 48 | (uint64_t)sample->user_end << 32 |
			(uint64_t)sample->kernel_end << 16 | sample->marks,
	};

	memcpy(shape.comm, sample->comm, sizeof(shape.comm));
	return shape;
}

/* Its number, after it was written where that had another one. Threads of a kind have one shape, and there are few kinds. */
static int shape_number(struct cutter *cutter, const struct window_sample *sample, uint8_t *ret_number)
{
	const struct shape shape = shape_of(sample);
	/* by the golden ratio: the last bits of the words reach the first of the product */
	const uint64_t hash = (shape.kind ^ shape.comm[0] ^ shape.comm[1] << 1) * UINT64_C(0x9e3779b97f4a7c15);
	struct shape *known;
	uint8_t *at;

	*ret_number = (uint8_t)(hash >> 58);
	known = &cutter->shapes[*ret_number];
	if (known->kind == shape.kind && known->comm[0] == shape.comm[0] && known->comm[1] == shape.comm[1])
		return 0;
	at = cut_begin(&cutter->dictionary, 2 + 5 * CUT_VARINT_MAX + STACKTAP_COMM_LEN);
	if (!at)
		return -ENOBUFS;
	*at++ = CUT_SHAPE;
	*at++ = *ret_number;
	at = cut_put(at, sample->profile);
	at = cut_put(at, sample->user_end);
	at = cut_put(at, sample->kernel_end);
	at = cut_put(at, sample->marks);
	*at = (uint8_t)strnlen(sample->comm, STACKTAP_COMM_LEN);
	memcpy(at + 1, sample->comm, *at);
	cut_end(&cutter->dictionary, at + 1 + *at);
	*known = shape;
	return 0;
}

/* No sample has that kind: user_end is one of few. */
static void forget_shapes(struct cutter *cutter)
{
	memset(cutter->shapes, 0xff, sizeof(cutter->shapes));
}

static bool is_near(uint64_t time, uint64_t before)
{
	const int64_t difference = (int64_t)(time - before);

	return difference == (int32_t)difference;
}

/* The time before is set where the sample's next is too far from it. */
static int come_near(struct cutter *cutter, uint64_t time)
{
	uint8_t *at;

	if (is_near(time, cutter->time))
		return 0;
	at = cut_begin(&cutter->dictionary, 1 + CUT_VARINT_MAX);
	if (!at)
		return -ENOBUFS;
	*at++ = CUT_TIME;
	cut_end(&cutter->dictionary, cut_put_signed(at, (int64_t)(time - cutter->time)));
	cutter->time = time;
	return 0;
}

/* The sample's next ones, as long as each is near the one before; how many is written at @counted. */
static uint8_t *put_times(struct cutter *cutter, uint8_t *at, uint8_t *counted, struct window_sample *sample)
{
	const uint32_t first = sample->in_cuts, most = min_of(sample->count, first + TIMES_AT_ONCE);
	uint32_t i;

	for (i = first; i < most && is_near(sample->times[i], cutter->time); i++) {
		at = cut_put32(at, (uint32_t)(sample->times[i] - cutter->time));
		cutter->time = sample->times[i];
	}
	for (uint32_t k = first; sample->values && k < i; k++)
		at = cut_put(at, sample->values[k]);
	cut_put16(counted, (uint16_t)(i - first));
	sample->in_cuts = i;
	return at;
}

/* Some of what is new of a sample; -EAGAIN: it is not to be written yet. */
static int sample_write(struct cutter *cutter, struct window_sample *sample)
{
	const uint32_t count = min_of(sample->count - sample->in_cuts, TIMES_AT_ONCE);
	const bool is_known = sample->journalled && sample->journalled >= cutter->first_sample;
	uint32_t stack = 0, image;
	uint8_t shape = 0, *at, *counted;
	int err;

	err = cut_image(&cutter->dictionary, sample->image, &image);
	if (err)
		return err;
	if (image == CUT_LEFT_OUT) {
		sample->in_cuts = sample->count;
		return 0;
	}
	if (!is_known)
		err = cut_stack(&cutter->dictionary, sample->stack, &stack) ?: shape_number(cutter, sample, &shape);
	err = err ?: come_near(cutter, sample->times[sample->in_cuts]);
	at = err ? NULL : cut_begin(&cutter->dictionary, CUT_SAMPLE_BYTES + count * (sizeof(uint32_t) + CUT_VARINT_MAX));
	if (!at)
		return -ENOBUFS;
	if (is_known) {
		*at++ = CUT_TIMES;
		counted = at;
		at = cut_put32(at + sizeof(uint16_t), sample->journalled - cutter->first_sample);
	} else {
		*at++ = CUT_SAMPLE;
		*at++ = shape;
		counted = at;
		at = cut_put32(at + sizeof(uint16_t), sample->tid);
		at = cut_put32(at, sample->cpu);
		at = cut_put32(at, image);
		at = cut_put32(at, stack);
		sample->journalled = cutter->samples++;
	}
	cut_end(&cutter->dictionary, put_times(cutter, at, counted, sample));
	return 0;
}

static void begin_window(struct cutter *cutter, const struct window *window)
{
	cutter->window = window->number;
	window_make_id(cutter->id);
	cutter->profiles = 0;
	cutter->first_sample = cutter->samples = 1;
	forget_shapes(cutter);
	cut_dictionary_window(&cutter->dictionary);
}

static void begin_file(struct cutter *cutter)
{
	cutter->file_bytes = 0;
	cutter->profiles = 0;
	cutter->first_sample = cutter->samples;
	forget_shapes(cutter);
	window_make_id(cutter->id);
	cut_dictionary_begin(&cutter->dictionary);
}

static int head_write(struct cutter *cutter)
{
	uint8_t *at = cut_begin(&cutter->dictionary, CUT_ID + 2 * CUT_VARINT_MAX);

	if (!at)
		return -ENOBUFS;
	at = cut_put(at, cutter->window);
	memcpy(at, cutter->id, CUT_ID);
	cut_end(&cutter->dictionary, cut_put_signed(at + CUT_ID, clock_realtime_offset()));
	cutter->time = 0;
	return 0;
}

/* Profiles that are new since the last cut, and names. */
static int tables_write(struct cutter *cutter, const struct window *window, uint64_t named)
{
	int err = 0;

	if (!cutter->file_bytes)
		err = cut_options(&cutter->dictionary);
	for (; !err && cutter->profiles < window->profile_count; cutter->profiles++)
		err = cut_profile(&cutter->dictionary, &window->profiles[cutter->profiles]);
	if (!err && cutter->named != named)
		err = cut_names(&cutter->dictionary);
	if (!err)
		cutter->named = named;
	return err;
}

/* All that is new of a sample, as far as there is room; what is not to be written yet stays new. */
static int news_write(struct cutter *cutter, struct window_sample *sample, struct cut *cut)
{
	size_t whole = cutter->dictionary.buffer->size;
	int err = 0;

	while (!err && sample->in_cuts < sample->count) {
		const uint32_t before = sample->in_cuts;

		cut->is_more = whole > CUT_BYTES_MAX;
		if (cut->is_more)
			return 0;
		err = sample_write(cutter, sample);
		if (!err && cutter->dictionary.buffer->size > whole) {
			cut->samples += sample->in_cuts - before;
			whole = cutter->dictionary.buffer->size;
		}
	}
	if (!err || err == -EAGAIN)
		return 0;
	/* what the file lacks from here on has an index all the same */
	cutter->dictionary.buffer->size = whole;
	cutter_begin(cutter);
	return err;
}

/*
 * Half of a cut's time is that of memory, which a second and a half of other work has pushed out of the caches: a sample,
 * what it points to and what that points to are asked for so many samples before they are needed.
 */
static void fetch_ahead(const struct window *window, size_t i)
{
	enum { SAMPLES = 40, STACKS = 24, LOCATIONS = 8 };
	const struct window_sample *sample;
	const struct image *image;
	const struct stack *stack;

	if (i + SAMPLES >= window->news_count)
		return;
	sample = &window->samples[window->news[i + SAMPLES]];
	__builtin_prefetch(sample);
	__builtin_prefetch(&sample->times);
	sample = &window->samples[window->news[i + STACKS]];
	__builtin_prefetch(sample->stack);
	__builtin_prefetch(sample->times + sample->in_cuts);
	image = sample->image;
	if (image) {
		__builtin_prefetch(&image->journalled);
		__builtin_prefetch(&image->context);
	}
	stack = window->samples[window->news[i + LOCATIONS]].stack;
	for (uint32_t k = 0; !stack->journalled && k < stack->count; k++)
		__builtin_prefetch(stack->locations[k]);
}

static int samples_write(struct cutter *cutter, struct window *window, struct cut *cut)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < window->news_count; i++) {
		struct window_sample *sample = &window->samples[window->news[i]];

		fetch_ahead(window, i);
		if (!err && !cut->is_more)
			err = news_write(cutter, sample, cut);
		if (sample->in_cuts < sample->count)
			window->news[kept++] = window->news[i];
	}
	window->news_count = kept;
	return cut->samples ? 0 : err;
}

int cutter_cut(struct cutter *cutter, struct window *window, uint64_t file_bytes, uint64_t named,
	       struct buffer *buffer, struct cut *ret_cut)
{
	const size_t before = buffer->size;
	size_t head;
	int err;

	*ret_cut = (struct cut){ .window = window->number };
	if (!window->news_count)
		return 0;
	cutter->dictionary.buffer = buffer;
	if (cutter->window != window->number) {
		if (cutter->file_bytes > file_bytes || cut_dictionary_is_full(&cutter->dictionary))
			cutter_begin(cutter);
		begin_window(cutter, window);
	}
	ret_cut->begins = !cutter->dictionary.epoch;
	if (ret_cut->begins)
		begin_file(cutter);
	err = head_write(cutter);
	head = buffer->size;
	err = err ?: tables_write(cutter, window, named) ?: samples_write(cutter, window, ret_cut);
	if (err) {
		/* with what it defined, the file is to be begun anew */
		buffer->size = before;
		cutter_begin(cutter);
		return err;
	}
	/* rules left out all that was new, or may do so later */
	if (buffer->size == head)
		buffer->size = before;
	cutter->file_bytes += buffer->size - before;
	return 0;
}
