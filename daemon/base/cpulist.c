// SPDX-License-Identifier: Apache-2.0
#include "base/cpulist.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"

enum {
	CPULIST_MAX_CPUS = 65536,
};

static int cpulist_number(const char **text, uint32_t *ret_number)
{
	char *end;
	unsigned long number;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	number = strtoul(*text, &end, 10);
	if (errno || number >= CPULIST_MAX_CPUS)
		return -EINVAL;
	*text = end;
	*ret_number = (uint32_t)number;
	return 0;
}

static int cpulist_set(struct cpulist *list, uint32_t first, uint32_t last)
{
	size_t count = last / 64 + 1;

	if (count > list->count) {
		uint64_t *words = realloc(list->words, count * sizeof(*words));

		if (!words)
			return -ENOMEM;
		for (size_t i = list->count; i < count; i++)
			words[i] = 0;
		list->words = words;
		list->count = count;
	}
	for (uint32_t cpu = first; cpu <= last; cpu++)
		list->words[cpu / 64] |= 1ULL << (cpu % 64);
	return 0;
}

int cpulist_parse(const char *text, struct cpulist *ret_list)
{
	struct cpulist list = { 0 };
	int r = 0;

	while (*text && *text != '\n') {
		uint32_t first, last;

		r = cpulist_number(&text, &first);
		if (r < 0)
			break;
		last = first;
		if (*text == '-') {
			text++;
			r = cpulist_number(&text, &last);
			if (r < 0)
				break;
		}
		if (last < first || (*text && *text != ',' && *text != '\n') ||
		    (*text == ',' && !isdigit((unsigned char)text[1]))) {
			r = -EINVAL;
			break;
		}
		text += *text == ',';
		r = cpulist_set(&list, first, last);
		if (r < 0)
			break;
	}
	if (r < 0) {
		cpulist_done(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

int cpulist_read_online(struct cpulist *ret_list)
{
	_cleanup_free_ char *text = NULL;
	int r = file_read(AT_FDCWD, "/sys/devices/system/cpu/online", 65536, &text, NULL);

	return r < 0 ? r : cpulist_parse(text, ret_list);
}

void cpulist_done(struct cpulist *list)
{
	free(list->words);
	list->words = NULL;
	list->count = 0;
}

void cpulist_format(const struct cpulist *list, char *buffer, size_t size)
{
	size_t used = 0;
	uint32_t cpu = 0;

	if (!size)
		return;
	buffer[0] = '\0';
	while (cpu < cpulist_limit(list)) {
		uint32_t first = cpu;
		char range[32];
		int length;

		if (!cpulist_has(list, cpu)) {
			cpu++;
			continue;
		}
		while (cpulist_has(list, cpu))
			cpu++;
		length = snprintf(range, sizeof(range), cpu - first == 1 ? "%s%u" : "%s%u-%u",
				  used ? "," : "", first, cpu - 1);
		/* always leave room for the mark that something is missing */
		if (used + (size_t)length + sizeof(",...") > size) {
			snprintf(buffer + used, size - used, used ? ",..." : "...");
			return;
		}
		memcpy(buffer + used, range, (size_t)length + 1);
		used += (size_t)length;
	}
}
