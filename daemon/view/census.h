/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording's frames lie in: its objects, by what they are known by elsewhere, and of each the
 * Locations. A first pass over the messages collects them, then they can be named, and a second one
 * writes the messages with those names, see view/rename.h.
 *
 * Input is foreign: every index is checked, work and memory are bounded by a message's size and POOL_REPORT.
 */
#ifndef STACKTAP_VIEW_CENSUS_H
#define STACKTAP_VIEW_CENSUS_H

#include "export/otlp.h"
#include "view/rows.h"
#include "view/texts.h"

struct recorded_object {
	const char *path;		/* "" for addresses in no mapping */
	const char *build_id, *htlhash;	/* "": unknown */
	uint64_t samples;		/* with a frame of it */
	uint32_t locations, unnamed;	/* Locations, and how many of these have no name */
	uint32_t first;			/* of its Locations, CENSUS_END: none */
};

#define CENSUS_END UINT32_MAX

struct recorded_location {
	uint32_t object, next;		/* next of the object; CENSUS_END: no more */
	bool is_unnamed, wants_lines;	/* in some message */
	uint64_t address, start, offset, limit;	/* and its Mapping */
	const char *function;		/* that is recorded, as linkers know it, where no file is behind it; NULL: none, or several */
	uint32_t first, count;		/* of what names it, in census.frames */
};

/* A function and a line of it, innermost first. All texts are the census's and never NULL. */
struct recorded_frame {
	const char *name, *system_name, *file;
	uint32_t line, column, start_line;
};

struct census {
	struct texts texts;
	struct rows objects;		/* struct recorded_object */
	struct rows locations;		/* struct recorded_location */
	struct buffer frames;		/* struct recorded_frame */
	uint64_t samples, messages;
};

void census_init(struct census *census);
void census_free(struct census *census);

/* A message's. -EBADMSG: no ProfilesData, or one that does not hang together; -E2BIG: too much memory. */
int census_add(struct census *census, const uint8_t *data, size_t size);

static inline struct recorded_object *census_at(const struct census *census, uint32_t i)
{
	return &((struct recorded_object *)(void *)census->objects.data.data)[i];
}

static inline struct recorded_location *census_location(const struct census *census, uint32_t i)
{
	return &((struct recorded_location *)(void *)census->locations.data.data)[i];
}

static inline const struct recorded_frame *census_frames(const struct census *census,
							   const struct recorded_location *location)
{
	return &((const struct recorded_frame *)(const void *)census->frames.data)[location->first];
}

/*
 * -EBADMSG: its Functions, Mappings, attributes or Locations refer to entries that there are not, which others
 * that are added would become.
 */
int census_check(const OtlpDictionary *dictionary);

/* One more frame of @location, whose frames are given one after the other. -E2BIG */
int census_name(struct census *census, struct recorded_location *location,
		 const struct recorded_frame *frame);

/* The object of Mapping @mapping of a message, which costs as much as it has attributes; INDEX_NONE: none. */
uint32_t census_object(const struct census *census, const OtlpDictionary *dictionary, uint32_t mapping);
/* Its Location @index, which is of @object and which census_add() has seen; NULL: none. */
const struct recorded_location *census_find(const struct census *census, uint32_t object,
					     const OtlpDictionary *dictionary, uint32_t index);

/* Names of a Location as it stands in a message. */
bool location_is_named(const OtlpDictionary *dictionary, const OtlpLocation *location);
/* It has a function's name, and nothing else that could be lost. */
bool location_wants_lines(const OtlpDictionary *dictionary, const OtlpLocation *location);

/* How many samples a Sample stands for. */
static inline uint64_t sample_count(const OtlpSample *sample)
{
	return max_of(sample->n_timestamps_unix_nano, (size_t)1);
}

#endif /* STACKTAP_VIEW_CENSUS_H */
