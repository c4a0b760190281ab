// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as questions to the parser, with any file: it answers or refuses, within a packet, and closes what it
 * was lent. A library that dies of a file is the parser's own death, which the daemon survives; here it counts.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "helper/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int make_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

/* One byte of the operation, one of how long its payload is; the rest is the payload and the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* what reads DWARF is asked by fuzz_lines, which knows addresses; PARSE_NAME by fuzz_demangle */
	static const uint32_t ops[] = { HELPER_HELLO, PARSE_FACTS, PARSE_SYMBOLS, PARSE_MINI_SYMBOLS, PARSE_TEXT,
					PARSE_KEY, PARSE_TABLE, OPEN_IN, PARSE_LINES, PARSE_DEBUG, PARSE_DWARF,
					PARSE_PERF_MAP, PARSE_JITDUMP, PARSE_CONTEXT, PARSE_LOAD_INDEX, PARSE_SAVE_INDEX,
					PARSE_DWO_NAMES, PARSE_SUM, PARSE_DWOS, PARSE_INSTRUCTIONS, PARSE_LINK };
	static uint64_t payload[HELPER_BYTES_MAX / 8], answered[HELPER_BYTES_MAX / 8];
	struct serve_request request = { .payload = payload, .fd = -1 };
	struct serve_answer answer = { .payload = (uint8_t *)answered, .fd = -1 };
	size_t bytes;

	if (size < 2)
		return 0;
	request.op = ops[data[0] % ARRAY_SIZE(ops)];
	bytes = min_of((size_t)data[1], size - 2);
	memset(payload, 0, sizeof(payload));
	memcpy(payload, data + 2, bytes);
	request.bytes = (uint32_t)bytes;
	if (data[0] < 128)
		request.fd = make_file(data + 2 + bytes, size - 2 - bytes);
	parse_answer(&request, &answer);
	if (answer.result > 0 || answer.bytes > HELPER_BYTES_MAX)
		abort();
	if (answer.fd >= 0)
		close(answer.fd);
	if (request.fd >= 0)
		close(request.fd);
	return 0;
}
