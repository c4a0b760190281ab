// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as stacktapd's configuration: refused with a sentence, or a configuration whose dump is read back as
 * the same one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "service/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(const void *data, size_t size, struct config *ret_config)
{
	int fd = memfd_create("config", MFD_CLOEXEC), ret;
	char path[32], error[512] = "";

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = config_load(path, ret_config, error, sizeof(error));
	if (ret < 0 && !error[0])
		abort();
	close(fd);
	return ret;
}

static char *dump(const struct config *config, size_t *ret_size)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, ret_size);

	if (!stream)
		abort();
	config_dump(config, stream);
	fclose(stream);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config, again;
	size_t once_size, twice_size;
	char *once, *twice;

	if (load(data, size, &config) < 0)
		return 0;
	once = dump(&config, &once_size);
	if (load(once, once_size, &again) < 0)
		abort();
	twice = dump(&again, &twice_size);
	if (strcmp(once, twice) != 0)
		abort();
	free(once);
	free(twice);
	config_done(&config);
	config_done(&again);
	return 0;
}
