// SPDX-License-Identifier: Apache-2.0
#include "export/grpc.h"

#include <endian.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "export/otlp.h"
#include "export/unpack.h"

#define DETAILS_MAX 4096u		/* of base64; a receiver's headers are bounded anyway */
#define UNPACK_MAX ((size_t)64 << 10)
#define RETRY_MAX_S 300			/* a receiver cannot silence us for longer */

static const char *const names[] = {
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
	"OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
};

void grpc_prefix(size_t size, bool is_compressed, uint8_t ret_prefix[GRPC_PREFIX])
{
	uint32_t length = htobe32((uint32_t)size);

	ret_prefix[0] = is_compressed;
	memcpy(ret_prefix + 1, &length, sizeof(length));
}

void grpc_status_init(struct grpc_status *status)
{
	*status = (struct grpc_status){ .code = -1, .retry_ms = -1 };
}

/* The value of the header @name, NULL: it is another one. */
static const char *value_of(const char *line, const char *name)
{
	const size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

/* What is not well encoded stays as it is. */
static void read_message(struct grpc_status *status, const char *value)
{
	char text[sizeof(status->message)];
	const char *end = value + strlen(value);
	size_t size = 0;

	while (*value && size + 1 < sizeof(text)) {
		const int byte = hex_percent(value, end);

		/* an encoded NUL would end the rest */
		text[size++] = byte > 0 ? (char)byte : byte ? *value : ' ';
		value += byte >= 0 ? 3 : 1;
	}
	text[size] = '\0';
	utf8_copy(status->message, sizeof(status->message), text);
}

static void read_retry(struct grpc_status *status, const Google__Rpc__Detail *detail)
{
	static const char type[] = "/google.rpc.RetryInfo";
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const size_t length = strlen(detail->type_url);
	const Google__Rpc__RetryInfo *info;
	int64_t seconds = 0, ms = 0;

	if (length < sizeof(type) - 1 || strcmp(detail->type_url + length - sizeof(type) + 1, type) ||
	    !unpack(&unpacked, &google__rpc__retry_info__descriptor, detail->value.data,
		    detail->value.len, UNPACK_MAX))
		return;
	info = (const Google__Rpc__RetryInfo *)unpacked.message;
	if (info->retry_delay) {
		seconds = info->retry_delay->seconds;
		ms = info->retry_delay->nanos / 1000000;
	}
	if (seconds < 0 || ms < 0)
		seconds = ms = 0;
	status->retry_ms = seconds >= RETRY_MAX_S ? RETRY_MAX_S * 1000 : seconds * 1000 + ms;
}

static void read_details(struct grpc_status *status, const char *value)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const size_t length = strcspn(value, "= \t");
	uint8_t bytes[DETAILS_MAX / 4 * 3];
	const Google__Rpc__Status *message;
	ssize_t size;

	if (length > DETAILS_MAX)
		return;
	/* padding is optional there */
	size = base64_decode(value, length, bytes);
	if (size < 0 ||
	    !unpack(&unpacked, &google__rpc__status__descriptor, bytes, (size_t)size, UNPACK_MAX))
		return;
	message = (const Google__Rpc__Status *)unpacked.message;
	for (size_t i = 0; i < message->n_details; i++)
		read_retry(status, message->details[i]);
}

void grpc_status_header(struct grpc_status *status, const char *line)
{
	const char *value;
	char *end;
	long code;

	value = value_of(line, "grpc-status");
	if (value) {
		code = strtol(value, &end, 10);
		/* one that nobody knows stands for UNKNOWN */
		status->code = end == value || code < 0 || code >= (long)ARRAY_SIZE(names) ? 2 : (int)code;
	}
	value = value_of(line, "grpc-message");
	if (value)
		read_message(status, value);
	value = value_of(line, "grpc-status-details-bin");
	if (value)
		read_details(status, value);
}

bool grpc_status_is_retryable(const struct grpc_status *status)
{
	switch (status->code) {
	case 1:		/* CANCELLED */
	case 4:		/* DEADLINE_EXCEEDED */
	case 10:	/* ABORTED */
	case 11:	/* OUT_OF_RANGE */
	case GRPC_UNAVAILABLE:
	case 15:	/* DATA_LOSS */
		return true;
	case GRPC_RESOURCE_EXHAUSTED:
		/* without a time it is the payload that is too large */
		return status->retry_ms >= 0;
	default:
		return false;
	}
}

const char *grpc_code_name(int code)
{
	return code >= 0 && code < (int)ARRAY_SIZE(names) ? names[code] : "no status";
}

int grpc_message(const uint8_t *data, size_t size, const uint8_t **ret_data, size_t *ret_size,
		 bool *ret_is_compressed)
{
	uint32_t length;

	if (size < GRPC_PREFIX || data[0] > 1)
		return -EBADMSG;
	memcpy(&length, data + 1, sizeof(length));
	if (be32toh(length) != size - GRPC_PREFIX)
		return -EBADMSG;
	*ret_data = data + GRPC_PREFIX;
	*ret_size = size - GRPC_PREFIX;
	*ret_is_compressed = data[0];
	return 0;
}
