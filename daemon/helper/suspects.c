// SPDX-License-Identifier: Apache-2.0
#include "helper/suspects.h"

#include "base/log.h"
#include "base/utf8.h"

enum {
	BLAME_MAX = 100 * PARSER_DEATHS_MAX,
	APART_MAX = SUSPECTS_MAX / 4 * 3,	/* the rest is for those that are not yet */
};

void stand_in_init(struct stand_in *stand_in, const struct object *object, enum suspect_part part)
{
	snprintf(stand_in->path, sizeof(stand_in->path), "%s of %s",
		 part == SUSPECT_INDEX ? "index of DWARF" : "other files with DWARF", object->path);
	stand_in->object = (struct object){
		.dev = object->dev, .inode = object->inode, .ctime_ns = object->ctime_ns, .path = stand_in->path,
		.size = object->size | (uint64_t)part << SUSPECT_PART_SHIFT,
	};
}

static const struct suspect *find(const struct suspects *suspects, const struct object *object)
{
	for (size_t i = 0; i < SUSPECTS_MAX; i++) {
		const struct suspect *suspect = &suspects->all[i];

		if (suspect->blame && suspect->inode == object->inode && suspect->dev == object->dev &&
		    suspect->ctime_ns == object->ctime_ns && suspect->size == object->size)
			return suspect;
	}
	return NULL;
}

bool suspects_has(const struct suspects *suspects, const struct object *object)
{
	const struct suspect *suspect = find(suspects, object);

	return suspect && suspect->blame >= BLAME_MAX;
}

size_t suspects_set_apart(const struct suspects *suspects)
{
	size_t count = 0;

	for (size_t i = 0; i < SUSPECTS_MAX; i++)
		count += suspects->all[i].blame >= BLAME_MAX;
	return count;
}

/*
 * In place of the next one that is not set apart: files that the parser dies of once each must not have one forgotten that it
 * dies of whenever it is asked. Nor may those that are set apart leave too few places for others to become it.
 */
static struct suspect *new_suspect(struct suspects *suspects)
{
	const bool is_apart = suspects_set_apart(suspects) >= APART_MAX;
	struct suspect *suspect;

	do
		suspect = &suspects->all[suspects->next++ % SUSPECTS_MAX];
	while ((suspect->blame >= BLAME_MAX) != is_apart);
	return suspect;
}

void suspects_accuse(struct suspects *suspects, const struct object *object, int error, unsigned int blame)
{
	const struct suspect *known = find(suspects, object);
	struct suspect *suspect = known ? &suspects->all[known - suspects->all] : new_suspect(suspects);
	char path[200];
	bool is_new;

	if (!known)
		*suspect = (struct suspect){
			.dev = object->dev, .inode = object->inode, .size = object->size,
			.ctime_ns = object->ctime_ns,
		};
	is_new = suspect->blame < BLAME_MAX;
	suspect->blame = min_of(suspect->blame + blame, (unsigned int)BLAME_MAX);
	if (!is_new || suspect->blame < BLAME_MAX)
		return;
	utf8_copy(path, sizeof(path), object->path);
	snprintf(suspects->last_set_apart, sizeof(suspects->last_set_apart), "%s: the parser %s", path,
		 error == -EPIPE ? "crashed" : "did not finish");
	log_warning("%s; it is not read again, and its frames stay without %s", suspects->last_set_apart,
		    object->size >> SUSPECT_PART_SHIFT ? "what it has of source lines" : "names");
}
