/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One OTLP Profile: the samples of one image and one configuration, as far as they fit a payload.
 */
#ifndef STACKTAP_EXPORT_PROFILE_H
#define STACKTAP_EXPORT_PROFILE_H

#include "export/dictionary.h"

/* A sample's timestamps [first, first + count). */
struct profile_part {
	const struct window_sample *sample;
	uint32_t first, count;
};

enum { PROFILE_PART_MAX = 16384 };	/* timestamps */

/* The attribute that a thread id, a thread name or a CPU last got. */
struct profile_cached {
	uint64_t generation;	/* of the dictionary */
	uint64_t key[2];
	int32_t index;
};

enum profile_cache {
	CACHE_THREAD_ID,
	CACHE_THREAD_NAME,
	CACHE_CPU,
	CACHE_COUNT
};

enum { PROFILE_CACHE_SLOTS = 64 };

struct profile_writer {
	const struct window *window;
	struct dictionary *dictionary;
	bool with_cpu, rounds_times;
	struct buffer identities, samples, scratch;
	uint64_t ordinal;	/* of the Profile in its window */
	uint32_t one_in;	/* of the image's samples, the one that is sent: stands for so many periods */
	bool *has_losses;	/* [profile_count]: written already */
	struct profile_cached cache[CACHE_COUNT][PROFILE_CACHE_SLOTS];
};

void profile_writer_init(struct profile_writer *writer);
void profile_writer_free(struct profile_writer *writer);

/* Bytes of its Samples at most, beside what they refer to. */
size_t profile_part_room(const struct profile_part *part);

/*
 * Append a Profile of the first of @parts, all of one image and configuration, to @buffer as field 2
 * of a ScopeProfiles, so that dictionary and Profile together grow by at most @room bytes. Writes
 * nothing when not even one part fits, unless @forced. *ret_count: parts written.
 */
int profile_write(struct profile_writer *writer, struct buffer *buffer, bool forced,
		  const struct profile_part *parts, size_t count, size_t room, size_t *ret_count,
		  uint64_t *ret_samples);

#endif /* STACKTAP_EXPORT_PROFILE_H */
