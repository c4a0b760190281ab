// SPDX-License-Identifier: Apache-2.0
#include "process/context.h"

#include <inttypes.h>
#include <string.h>

enum {
	VERSION = 2,
	ATTEMPTS = 3,		/* while it is being changed */
	LINES_MAX = 32768,	/* of maps; what lies above in a larger address space is not found */
};

/* In the mapping, in the order of bytes of its process. */
struct header {
	char signature[8];	/* without a NUL */
	uint32_t version, size;
	uint64_t published;	/* 0: it is being changed */
	uint64_t payload;
};

static int read_at(int memory, uint64_t address, void *buffer, size_t size)
{
	ssize_t n = pread(memory, buffer, size, (off_t)address);

	if (n < 0)
		return errno == EIO || errno == EINVAL || errno == EOVERFLOW ? -EFAULT : -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

/* @context has the address, and the time of the payload that is known. */
static int read_once(int memory, struct context *context)
{
	struct header header, again;
	uint8_t *payload;
	int r = read_at(memory, context->address, &header, sizeof(header));

	if (r < 0)
		return r;
	if (memcmp(header.signature, "OTEL_CTX", sizeof(header.signature)) || header.version != VERSION ||
	    !header.size || header.size > CONTEXT_MAX_BYTES)
		return -EBADMSG;
	if (!header.published)
		return -EAGAIN;
	if (header.published == context->published)
		return 0;
	payload = malloc(header.size);
	if (!payload)
		return -ENOMEM;
	r = read_at(memory, header.payload, payload, header.size);
	/* the payload is the header's if that is still the same; what could not be read may have moved */
	if (read_at(memory, context->address, &again, sizeof(again)) < 0 ||
	    memcmp(&header, &again, sizeof(header)))
		r = -EAGAIN;
	if (r < 0) {
		free(payload);
		return r == -EFAULT ? -EBADMSG : r;
	}
	context->published = header.published;
	context->size = header.size;
	context->payload = payload;
	return 0;
}

static int read_patiently(int memory, struct context *context)
{
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < ATTEMPTS; i++)
		r = read_once(memory, context);
	return r;
}

/* By what the kernel calls it, with prctl() and memfd_create() or with one of them, never where code is. */
static bool is_context(const char *line, uint64_t *ret_start)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX" };
	char permissions[5];
	int name = -1;

	/* most lines cost no more than this */
	if (!strstr(line, "OTEL_CTX"))
		return false;
	if (sscanf(line, "%" SCNx64 "-%*x %4s %*x %*x:%*x %*u %n", ret_start, permissions, &name) != 2 ||
	    name < 0 || permissions[2] == 'x')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(line + name, names[i], strlen(names[i])))
			return true;
	return false;
}

static int find(int memory, FILE *maps, struct context *context)
{
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int r = -ENODATA;

	/* another mapping of that name may be a good one */
	for (int i = 0; (r == -ENODATA || r == -EBADMSG) && i < LINES_MAX &&
			getline(&line, &capacity, maps) > 0; i++)
		if (is_context(line, &context->address)) {
			int err = read_patiently(memory, context);

			r = err == -EFAULT ? -EBADMSG : err;
		}
	return r;
}

int context_read(int memory, FILE *maps, const struct context *known, struct context *ret_context)
{
	struct context context = { .address = known->address, .published = known->published };
	int r = known->address ? read_patiently(memory, &context) : -EFAULT;

	/* it was mapped somewhere else meanwhile */
	if (r == -EFAULT || r == -EBADMSG) {
		context = (struct context){ .published = known->published };
		r = find(memory, maps, &context);
	}
	if (!r)
		*ret_context = context;
	return r;
}
