// SPDX-License-Identifier: Apache-2.0
#include "client/event.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/near.h"
#include "base/utf8.h"
#include "client/pmu.h"

enum {
	NS_PER_S = 1000000000,
	MAX_EVENT = 256,
	CACHE_SHIFT = 8,
	CACHE_RESULT_SHIFT = 16,
};

static const char pmu_root[] = "/sys/bus/event_source/devices";

struct named_event {
	const char *name;
	uint32_t type;
	uint64_t config;
};

#define HARDWARE(name, id) { name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id }
#define SOFTWARE(name, id) { name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id }

/* The first name of an event is the one that event_name() gives. */
static const struct named_event named_events[] = {
	HARDWARE("cycles", CPU_CYCLES),
	HARDWARE("cpu-cycles", CPU_CYCLES),
	HARDWARE("instructions", INSTRUCTIONS),
	HARDWARE("cache-references", CACHE_REFERENCES),
	HARDWARE("cache-misses", CACHE_MISSES),
	HARDWARE("branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-instructions", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", BRANCH_MISSES),
	HARDWARE("bus-cycles", BUS_CYCLES),
	HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("idle-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("ref-cycles", REF_CPU_CYCLES),
	SOFTWARE("cpu-clock", CPU_CLOCK),
	SOFTWARE("task-clock", TASK_CLOCK),
	SOFTWARE("page-faults", PAGE_FAULTS),
	SOFTWARE("faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", PAGE_FAULTS_MAJ),
	SOFTWARE("context-switches", CONTEXT_SWITCHES),
	SOFTWARE("cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
	SOFTWARE("migrations", CPU_MIGRATIONS),
	SOFTWARE("alignment-faults", ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", EMULATION_FAULTS),
};

static const char *const cache_names[] = {
	[PERF_COUNT_HW_CACHE_L1D] = "L1-dcache", [PERF_COUNT_HW_CACHE_L1I] = "L1-icache",
	[PERF_COUNT_HW_CACHE_LL] = "LLC", [PERF_COUNT_HW_CACHE_DTLB] = "dTLB",
	[PERF_COUNT_HW_CACHE_ITLB] = "iTLB", [PERF_COUNT_HW_CACHE_BPU] = "branch",
	[PERF_COUNT_HW_CACHE_NODE] = "node",
};

static const char *const cache_suffixes[][2] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = { "-loads", "-load-misses" },
	[PERF_COUNT_HW_CACHE_OP_WRITE] = { "-stores", "-store-misses" },
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = { "-prefetches", "-prefetch-misses" },
};

static uint64_t cache_config(size_t cache, size_t operation, size_t result)
{
	return cache | operation << CACHE_SHIFT | result << CACHE_RESULT_SHIFT;
}

static void cache_event_name(char *buffer, size_t size, size_t cache, size_t operation,
			     size_t result)
{
	snprintf(buffer, size, "%s%s", cache_names[cache], cache_suffixes[operation][result]);
}

/* Call @each for every known name until it returns true. */
static bool each_name(bool (*each)(void *ctx, const struct named_event *event), void *ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(named_events); i++)
		if (each(ctx, &named_events[i]))
			return true;
	for (size_t cache = 0; cache < ARRAY_SIZE(cache_names); cache++)
		for (size_t operation = 0; operation < ARRAY_SIZE(cache_suffixes); operation++)
			for (size_t result = 0; result < 2; result++) {
				char name[STACKTAP_NAME_LEN];
				struct named_event event = {
					.name = name,
					.type = PERF_TYPE_HW_CACHE,
					.config = cache_config(cache, operation, result),
				};

				cache_event_name(name, sizeof(name), cache, operation, result);
				if (each(ctx, &event))
					return true;
			}
	return false;
}

struct search {
	const char *wanted;
	struct control_source *source;
	unsigned int distance;		/* of the nearest name so far */
	char nearest[STACKTAP_NAME_LEN];
};

static bool match_name(void *ctx, const struct named_event *event)
{
	struct search *search = ctx;

	if (strcasecmp(event->name, search->wanted))
		return false;
	search->source->type = event->type;
	search->source->config = event->config;
	return true;
}

static bool keep_nearest(void *ctx, const struct named_event *event)
{
	struct search *search = ctx;
	unsigned int distance = near_distance(event->name, search->wanted);

	if (distance < search->distance) {
		search->distance = distance;
		snprintf(search->nearest, sizeof(search->nearest), "%s", event->name);
	}
	return false;
}

static int parse_raw(const char *text, struct control_source *source)
{
	char *end;

	if (text[0] != 'r' || !isxdigit((unsigned char)text[1]))
		return -ENOENT;
	errno = 0;
	source->config = strtoull(text + 1, &end, 16);
	if (errno || *end)
		return -ENOENT;
	source->type = PERF_TYPE_RAW;
	return 0;
}

static int refuse_precise(const char *event, const char *modifiers, bool user, bool kernel,
			  char *error, size_t error_size)
{
	size_t length = min_of((size_t)(modifiers - event), (size_t)64);
	bool has_colon = length && event[length - 1] == ':';

	/* what is in front of the modifiers ends with a slash or a colon, which is left out if alone */
	if (has_colon && !user && !kernel)
		length--;
	return fail_invalid(error, error_size,
			    "precise events are not supported: the sampled address and the stack "
			    "would belong to different instructions; remove the modifier: "
			    "%.*s%s%s", (int)length,
			    event, user ? "u" : "", kernel ? "k" : "");
}

/* @text is where they begin in @event. */
static int parse_modifiers(const char *event, const char *text, struct control_source *source,
			   char *error, size_t error_size)
{
	const char *modifiers = text;
	bool user = false, kernel = false, precise = false;

	if (!*text)
		return fail_invalid(error, error_size,
				    "no modifier after the colon; use u or k");
	for (; *text; text++) {
		if (*text == 'u')
			user = true;
		else if (*text == 'k')
			kernel = true;
		else if (*text == 'p' || *text == 'P')
			precise = true;
		else
			return fail_invalid(error, error_size,
					    "unknown event modifier `%s': use u or k", text);
	}
	if (precise)
		return refuse_precise(event, modifiers, user, kernel, error, error_size);
	if (user && !kernel)
		source->flags |= STACKTAP_SRC_EXCLUDE_KERNEL;
	if (kernel && !user)
		source->flags |= STACKTAP_SRC_EXCLUDE_USER;
	return 0;
}

static int unknown_event(const char *name, struct search *search, char *error, size_t error_size)
{
	if (strchr(name, ':'))
		return fail_invalid(error, error_size,
				    "`%.64s': tracepoints are not supported", name);
	each_name(keep_nearest, search);
	if (!near_helps(name, search->distance))
		return fail_invalid(error, error_size,
				    "unknown event `%.64s'; known are cycles, instructions, "
				    "cpu-clock, page-faults, rNNN, PMU/term=value/ and others", name);
	return fail_invalid(error, error_size, "unknown event `%.64s'; did you mean `%s'?", name,
			    search->nearest);
}

static bool parse_pace_value(const char *text, uint64_t most, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !errno && !*end && *ret_value && *ret_value <= most;
}

/*
 * Any event may have perf's terms freq=N and period=N. They are taken out of @name, which shrinks:
 * "cycles/freq=97/u" becomes "cycles:u".
 */
static int take_pace(char *name, struct control_source *source, char *error, size_t error_size)
{
	char *first = strchr(name, '/'), *last = strrchr(name, '/'), *save;
	char terms[MAX_EVENT], kept[MAX_EVENT];
	size_t length = 0;
	uint64_t value;

	if (!first || first == last)
		return 0;
	snprintf(terms, sizeof(terms), "%.*s", (int)(last - first - 1), first + 1);
	for (char *term = strtok_r(terms, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		if (!strncmp(term, "freq=", 5)) {
			if (!parse_pace_value(term + 5, STACKTAP_MAX_RATE_HZ, &value))
				return fail_invalid(error, error_size,
						    "rate `%.64s' is not a number from 1 to %d "
						    "Hz", term + 5, STACKTAP_MAX_RATE_HZ);
			source->rate_hz = (uint32_t)value;
		} else if (!strncmp(term, "period=", 7)) {
			if (!parse_pace_value(term + 7, INT64_MAX, &source->period))
				return fail_invalid(error, error_size,
						    "period `%.64s' is not a number above 0",
						    term + 7);
		} else {
			length += (size_t)sprintf(kept + length, "%c%s", length ? ',' : '/', term);
		}
	}
	if (source->rate_hz && source->period)
		return fail_invalid(error, error_size,
				    "an event has a rate (freq=) or a period, not both");
	if (!source->rate_hz && !source->period)
		return 0;
	if (length)
		sprintf(kept + length, "%s", last);
	else
		sprintf(kept, "%s%s", last[1] && last[1] != ':' ? ":" : "", last + 1);
	strcpy(first, kept);
	return 0;
}

int event_parse(const char *text, struct control_source *ret_source, char *error,
		size_t error_size)
{
	struct control_source source = { .mode = STACKTAP_MODE_PERIOD };
	struct search search = { .source = &source, .distance = UINT32_MAX };
	char name[MAX_EVENT], *colon, *slash;
	int ret;

	if (!*text)
		return fail_invalid(error, error_size, "an event has a name");
	if (strlen(text) >= sizeof(name))
		return fail_invalid(error, error_size, "no event has a name as long as that");
	strcpy(name, text);
	ret = take_pace(name, &source, error, error_size);
	if (ret < 0)
		return ret;
	utf8_copy(source.name, sizeof(source.name), name);
	/* a PMU's terms may hold colons; modifiers come after them, with or without one of their own */
	slash = strrchr(name, '/');
	colon = strrchr(slash ? slash : name, ':');
	if (slash && slash != strchr(name, '/') && slash[1] && slash[1] != ':') {
		ret = parse_modifiers(name, slash + 1, &source, error, error_size);
		if (ret < 0)
			return ret;
		slash[1] = '\0';
	} else if (colon && strspn(colon + 1, "ukpPhHGSDIeW") == strlen(colon + 1)) {
		ret = parse_modifiers(name, colon + 1, &source, error, error_size);
		if (ret < 0)
			return ret;
		*colon = '\0';
	}
	search.wanted = name;
	if (slash && slash != name) {
		struct pmu_event event;

		ret = pmu_parse(pmu_root, name, &event, error, error_size);
		if (ret < 0)
			return ret;
		source.type = event.type;
		source.config = event.config[0];
		source.config1 = event.config[1];
		source.config2 = event.config[2];
	} else if (!each_name(match_name, &search) && parse_raw(name, &source) < 0) {
		return unknown_event(name, &search, error, error_size);
	}
	if (event_is_clock(source.type, source.config))
		source.nominal_hz = NS_PER_S;
	else if (event_is_cpu_time(source.type, source.config))
		/* cycles that nobody can count become cpu-clock, which counts nanoseconds */
		source.nominal_hz = event_nominal_cycles() ?: NS_PER_S;
	/* without a nominal rate only the kernel can find the period of a rate */
	if (!source.nominal_hz && !source.period)
		source.mode = STACKTAP_MODE_FREQ;
	*ret_source = source;
	return 0;
}

bool event_is_clock(uint32_t type, uint64_t config)
{
	return type == PERF_TYPE_SOFTWARE &&
	       (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

bool event_is_cpu_time(uint32_t type, uint64_t config)
{
	return event_is_clock(type, config) ||
	       (type == PERF_TYPE_HARDWARE && config == PERF_COUNT_HW_CPU_CYCLES);
}

const char *event_name(uint32_t type, uint64_t config)
{
	static _Thread_local char name[STACKTAP_NAME_LEN];
	size_t cache = config & 0xff, operation = config >> CACHE_SHIFT & 0xff;
	size_t result = config >> CACHE_RESULT_SHIFT;

	for (size_t i = 0; i < ARRAY_SIZE(named_events); i++)
		if (named_events[i].type == type && named_events[i].config == config)
			return named_events[i].name;
	if (type == PERF_TYPE_RAW) {
		snprintf(name, sizeof(name), "r%llx", (unsigned long long)config);
		return name;
	}
	if (type != PERF_TYPE_HW_CACHE || cache >= ARRAY_SIZE(cache_names) ||
	    operation >= ARRAY_SIZE(cache_suffixes) || result > 1)
		return NULL;
	cache_event_name(name, sizeof(name), cache, operation, result);
	return name;
}
