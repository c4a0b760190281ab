// SPDX-License-Identifier: Apache-2.0
#include "counter/counter.h"

#include <string.h>

const struct counter counters[COUNTER_COUNT] = {
#define COUNTER(group, name, kind, unit, value, meaning) \
	[COUNTER_##group##_##name] = { GROUP_##group, KIND_##kind, #name, unit, meaning },
#include "counter/counters.def"
};

const struct counter_fact counter_facts[FACT_COUNT] = {
#define FACT(group, name, value, meaning) [FACT_##group##_##name] = { GROUP_##group, #name },
#include "counter/counters.def"
};

const struct counter_object counter_objects[GROUP_COUNT] = {
#define GROUP(id, key, labels, meaning) [GROUP_##id] = { key, labels },
#include "counter/counters.def"
};

/* What metrics call an object whose key is none, or is in the plural for its instances. */
static const char *object_name(enum counter_group group)
{
	switch (group) {
	case GROUP_HELPER:
	case GROUP_POOL:
	case GROUP_DESTINATION:
	case GROUP_THREAD:
		return counter_objects[group].label;
	case GROUP_STACKS:
		return "user";
	default:
		return counter_objects[group].key;
	}
}

const char *counter_metric_unit(enum counter_id id)
{
	const char *unit = counters[id].unit;

	if (!strcmp(unit, "ns") || !strcmp(unit, "s"))
		return "seconds";
	return !strcmp(unit, "bytes") ? unit : NULL;
}

/* A word of a counter's name that its unit, behind everything else, says. */
static bool is_unit(const char *word, size_t length)
{
	static const char *const units[] = { "bytes", "nano", "ns", "seconds" };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i]) == length && !strncmp(word, units[i], length))
			return true;
	return false;
}

/* Object and counter with @separator between them. Returns the length. */
static size_t put_name(enum counter_id id, char separator, char name[static COUNTER_METRIC_MAX])
{
	const struct counter *counter = &counters[id];
	const char *object = object_name(counter->group), *unit = counter_metric_unit(id);
	const char separators[] = { separator, '\0' };
	size_t size = (size_t)snprintf(name, COUNTER_METRIC_MAX, "stacktap%s%s", *object ? separators : "",
				       object);
	const char *word = counter->name;
	bool is_first = true;

	while (*word) {
		size_t length = strcspn(word, "_");
		bool is_object = word == counter->name && strlen(object) == length &&
				 !strncmp(word, object, length);

		if (!is_object && !(unit && is_unit(word, length))) {
			size += (size_t)snprintf(name + size, COUNTER_METRIC_MAX - size, "%c%.*s",
						 is_first ? separator : '_', (int)length, word);
			is_first = false;
		}
		word += length + (word[length] == '_');
	}
	return size;
}

void counter_metric(enum counter_id id, char ret_name[static COUNTER_METRIC_MAX])
{
	const size_t size = put_name(id, '_', ret_name);
	const char *unit = counter_metric_unit(id);

	if (unit)
		snprintf(ret_name + size, COUNTER_METRIC_MAX - size, "_%s", unit);
}

void counter_otlp_name(enum counter_id id, char ret_name[static COUNTER_METRIC_MAX])
{
	put_name(id, '.', ret_name);
}

void counter_otlp_unit(enum counter_id id, char ret_unit[static COUNTER_METRIC_MAX])
{
	const struct counter *counter = &counters[id];
	const char *unit = counter_metric_unit(id);

	if (unit)
		snprintf(ret_unit, COUNTER_METRIC_MAX, "%s", unit[0] == 's' ? "s" : "By");
	else if (!counter->unit[0])
		ret_unit[0] = '\0';
	else
		snprintf(ret_unit, COUNTER_METRIC_MAX, "{%s}", counter->unit);
}
