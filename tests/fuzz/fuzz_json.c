// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a receiver's answer in JSON, and as a payload of a spool that is to be sent as JSON. */
#include <stdlib.h>
#include <string.h>

#include "export/json_answer.h"
#include "export/otlp.h"
#include "export/otlp_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer buffer = { .pool = POOL_ENCODE };
	struct json_answer said;

	if (!json_answer_read(data, size, &said) && !memchr(said.text, '\0', sizeof(said.text)))
		abort();
	if (!otlp_json_append(&buffer, OTLP_DATA_DESCRIPTOR, data, size) && buffer.size < 2)
		abort();
	buffer_free(&buffer);
	if (pool_get(POOL_ENCODE)->used)
		abort();
	return 0;
}
