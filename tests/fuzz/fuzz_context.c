// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the memory in which a process publishes its context, from address 0 on: no crash, and what is
 * taken of it are texts that end, of pairs that can be read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "export/environment.h"
#include "process/context.h"
#include "process/details.h"
#include "symbol/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_pair(void *ctx, const char *key, const char *value)
{
	size_t *count = ctx;

	if (!key[0] || !value[0] || !details_may_be_told(key))
		abort();
	(*count)++;
	return 0;
}

static void parse(const uint8_t *data, size_t size)
{
	struct context_facts facts;
	size_t count = 0;
	int r = context_parse(data, size, &facts);

	if (!memchr(facts.service_name, '\0', sizeof(facts.service_name)) ||
	    !memchr(facts.attributes, '\0', sizeof(facts.attributes)))
		abort();
	if (r == 0 && environment_each_pair(facts.attributes, count_pair, &count) < 0)
		abort();
	if (count > DETAILS_MAX_ATTRIBUTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char line[] = "0-1000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n";
	const struct context none = { 0 };
	int memory = memfd_create("memory", MFD_CLOEXEC);
	FILE *maps = fmemopen(line, sizeof(line) - 1, "r");
	struct context context;

	if (memory < 0 || !maps || write(memory, data, size) != (ssize_t)size)
		abort();
	if (context_read(memory, maps, &none, &context) == 0) {
		if (!context.payload || !context.size || context.size > CONTEXT_MAX_BYTES || !context.published)
			abort();
		parse(context.payload, context.size);
		free(context.payload);
	}
	parse(data, size);
	fclose(maps);
	close(memory);
	return 0;
}
