// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a file that a spool finds: torn, damaged, of another version. It opens, gives out only what its
 * checksum holds for, and takes and gives one of ours beside that.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "export/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, ROUNDS_MAX = 100000 };

static char directory[] = "/tmp/fuzz-spool-XXXXXX";

static void remove_all(void)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
}

static void at_exit(void)
{
	remove_all();
	rmdir(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t ours[] = "this is what we put there";
	const struct store_options options = { .directory = directory, .max_bytes = MAX_BYTES, .is_spool = true };
	struct store_message message;
	struct store *store;
	bool is_found = false;
	char path[64];
	int fd, ret;

	if (strstr(directory, "XXXXXX")) {
		if (!mkdtemp(directory))
			abort();
		atexit(at_exit);
		log_setup("fuzz", LOG_LEVEL_ERROR);
	}
	remove_all();
	snprintf(path, sizeof(path), "%s/profiles-1700000000000.otlp", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd))
		abort();
	if (store_open(&options, &store) < 0 || store_append(store, ours, sizeof(ours), 3) < 0)
		abort();
	for (int i = 0; (ret = store_oldest(store, MAX_BYTES, &message)) == 1; i++) {
		is_found = message.size == sizeof(ours) && !memcmp(message.data, ours, sizeof(ours));
		free(message.data);
		store_take(store);
		if (i > ROUNDS_MAX)
			abort();
	}
	/* the last, as it is the newest */
	if (ret || !is_found || store_stats(store).messages || store_stats(store).samples)
		abort();
	store_close(store);
	return 0;
}
