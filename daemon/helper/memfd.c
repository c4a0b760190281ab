// SPDX-License-Identifier: Apache-2.0
#include "helper/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"

int memfd_new(void)
{
	int fd = memfd_create("stacktap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

int memfd_seal(int *fd)
{
	if (fcntl(*fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return steal_fd(fd);
}

bool memfd_is_sealed(int fd, uint64_t *ret_size)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) < 0)
		return false;
	*ret_size = (uint64_t)st.st_size;
	return true;
}

int memfd_read(int fd, void *buffer, size_t size, size_t offset)
{
	int r = file_pread(fd, buffer, size, offset);

	return r == -ENODATA ? -EBADMSG : r;
}

char *memfd_text(int fd, size_t offset, size_t size)
{
	char *text = malloc(size + 1);

	if (!text || memfd_read(fd, text, size, offset) < 0) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	return text;
}
