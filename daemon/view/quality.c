// SPDX-License-Identifier: Apache-2.0
#include "view/quality.h"

#include <string.h>

#include "view/rows.h"

static const char prefix[] = "stacktap.";

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
#define QUALITY_SUM(name) { #name, offsetof(struct view_quality, name) },
#define QUALITY_GAUGE(name)
#define SHARED(group, name, kind, unit, rule, own, value, meaning) QUALITY_##kind(name)
#include "counter/counters.def"
};

static uint64_t *number_at(struct view_quality *quality, size_t i)
{
	return (uint64_t *)(void *)((char *)quality + numbers[i].offset);
}

static uint64_t number_of(const struct view_quality *quality, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)quality + numbers[i].offset);
}

uint64_t *quality_find(struct view_quality *quality, const char *key)
{
	if (strncmp(key, prefix, sizeof(prefix) - 1))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(key + sizeof(prefix) - 1, numbers[i].name))
			return number_at(quality, i);
	return NULL;
}

void quality_add(struct view_quality *sum, const struct view_quality *quality)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		rows_sum(number_at(sum, i), number_of(quality, i));
}

void quality_json(const struct view_quality *quality, struct json *json)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].offset != offsetof(struct view_quality, samples))
			json_u64(json, numbers[i].name, number_of(quality, i));
}
