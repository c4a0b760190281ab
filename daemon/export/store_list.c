// SPDX-License-Identifier: Apache-2.0
#include "export/store_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define STORE_PREFIX "profiles-"
#define STORE_SUFFIX ".otlp"
#define STORE_TIME_LIMIT 10000000000000ULL	/* Unix ms: 13 digits, until the year 2286 */

struct store_name store_name(uint64_t time)
{
	struct store_name name;

	snprintf(name.text, sizeof(name.text), STORE_PREFIX "%013llu" STORE_SUFFIX,
		 (unsigned long long)time);
	return name;
}

/* Only names that we would make ourselves are ours to remove. */
static bool entry_parse(const char *text, uint64_t *ret_time)
{
	const char *digits = text + strlen(STORE_PREFIX);
	char *end;

	if (strncmp(text, STORE_PREFIX, strlen(STORE_PREFIX)) || *digits < '0' || *digits > '9')
		return false;
	*ret_time = strtoull(digits, &end, 10);
	/* one with more digits would be the newest for ever */
	return *ret_time < STORE_TIME_LIMIT && !strcmp(store_name(*ret_time).text, text);
}

static int time_compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int store_list(int directory, uint64_t **ret_times, size_t *ret_count)
{
	_cleanup_free_ uint64_t *times = NULL;
	size_t count = 0, capacity = 0;
	struct dirent *dirent;
	uint64_t time;
	DIR *dir;
	int fd, err = 0;

	fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (dirent = readdir(dir))) {
		if (!entry_parse(dirent->d_name, &time))
			continue;
		if (count == capacity) {
			uint64_t *larger;

			capacity = capacity ? capacity * 2 : 64;
			larger = reallocarray(times, capacity, sizeof(*times));
			if (!larger) {
				err = -ENOMEM;
				break;
			}
			times = larger;
		}
		times[count++] = time;
	}
	closedir(dir);
	if (err)
		return err;
	if (count)
		qsort(times, count, sizeof(*times), time_compare);
	*ret_times = steal_ptr(times);
	*ret_count = count;
	return 0;
}

int store_open_file(int directory, uint64_t time)
{
	int fd = openat(directory, store_name(time).text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

int store_remove_file(int directory, uint64_t time)
{
	return unlinkat(directory, store_name(time).text, 0) && errno != ENOENT ? -errno : 0;
}
