/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher of an OpenTelemetry process context, as OTEP 4719 wants it of SDKs. */
#ifndef STACKTAP_TESTS_PUBLISH_H
#define STACKTAP_TESTS_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct published {
	char signature[8];
	uint32_t version, size;
	_Atomic uint64_t time;
	uint64_t payload;
};

struct payload {
	size_t size;
	uint8_t bytes[512];
};

/* A string attribute in a Resource of its own, which add up; all lengths take one byte. */
static inline void payload_add(struct payload *payload, const char *key, const char *value)
{
	const size_t k = strlen(key), v = strlen(value), pair = k + v + 6;
	const uint8_t head[] = { 0x0a, (uint8_t)(pair + 2), 0x0a, (uint8_t)pair, 0x0a, (uint8_t)k };
	const uint8_t middle[] = { 0x12, (uint8_t)(v + 2), 0x0a, (uint8_t)v };
	uint8_t *to = payload->bytes + payload->size;

	if (pair + 4 >= 128 || payload->size + pair + 4 > sizeof(payload->bytes))
		_exit(99);
	memcpy(to, head, sizeof(head));
	memcpy(to + sizeof(head), key, k);
	memcpy(to + sizeof(head) + k, middle, sizeof(middle));
	memcpy(to + sizeof(head) + k + sizeof(middle), value, v);
	payload->size += pair + 4;
}

static inline uint64_t boot_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Publish, or change what is published. @payload stays where it is. */
static inline void publish_payload(struct published *context, const struct payload *payload)
{
	atomic_store(&context->time, 0);
	memcpy(context->signature, "OTEL_CTX", sizeof(context->signature));
	context->version = 2;
	context->size = (uint32_t)payload->size;
	context->payload = (uintptr_t)payload->bytes;
	atomic_store(&context->time, boot_time());
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, context, sizeof(*context), "OTEL_CTX");
}

/* Where it is to be published, MAP_FAILED if memory is out. */
static inline struct published *publish_place(void)
{
	const int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct published *context;

	if (fd >= 0 && ftruncate(fd, sizeof(*context)) < 0)
		return MAP_FAILED;
	context = mmap(NULL, sizeof(*context), PROT_READ | PROT_WRITE,
		       fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (context != MAP_FAILED)
		madvise(context, sizeof(*context), MADV_DONTFORK);
	return context;
}

#endif /* STACKTAP_TESTS_PUBLISH_H */
