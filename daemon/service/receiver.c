// SPDX-License-Identifier: Apache-2.0
#include "service/receiver.h"

#include <string.h>

#include "base/fail.h"
#include "export/compression.h"
#include "export/encode.h"
#include "export/environment.h"
#include "export/protocol.h"
#include "service/option.h"

#define FIELD(field) offsetof(struct receiver, field)

static const struct option options[] = {
	{ "", "endpoint", OPTION_STRING, FIELD(endpoint), 0, 0, { NULL } },
	{ "", "protocol", OPTION_CHOICE, FIELD(protocol), 0, 0, { PROTOCOL_NAMES } },
	{ "", "headers", OPTION_STRING, FIELD(headers), 0, 0, { NULL } },
	{ "", "headers_file", OPTION_STRING, FIELD(headers_file), 0, 0, { NULL } },
	{ "", "certificate", OPTION_STRING, FIELD(certificate), 0, 0, { NULL } },
	{ "", "client_certificate", OPTION_STRING, FIELD(client_certificate), 0, 0, { NULL } },
	{ "", "client_key", OPTION_STRING, FIELD(client_key), 0, 0, { NULL } },
	{ "", "compression", OPTION_CHOICE, FIELD(compression), 0, 0, { "none", "gzip", "zstd" } },
	{ "", "timeout_seconds", OPTION_NUMBER, FIELD(timeout_seconds), 1, 600, { NULL } },
	{ "", "unnamed", OPTION_CHOICE, FIELD(unnamed), 0, 0, { "", "address", "range" } },
	{ "", "kernel_suffix", OPTION_STRING, FIELD(kernel_suffix), 0, 0, { NULL } },
	{ "", "repeat_functions", OPTION_YES_NO, FIELD(repeats), 0, 0, { "", "no", "yes" } },
	{ "", "spool", OPTION_STRING, FIELD(spool_directory), 0, 0, { NULL } },
	{ "", "spool_max_bytes", OPTION_BYTES, FIELD(spool_max_bytes), 65536, UINT64_C(1) << 50, { NULL } },
	{ "", "spool_max_age_hours", OPTION_NUMBER, FIELD(spool_max_age_hours), 0, 87600, { NULL } },
};

int receiver_init(struct receiver *receiver, const char *name, char *error, size_t error_size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	char *directory, *copy;

	if (!*name || strlen(name) > RECEIVER_NAME_MAX || name[strspn(name, letters)] || !strcmp(name, "export"))
		return fail_invalid(error, error_size,
				    "`%.40s' is not a valid destination name: use 1 to %d letters, digits, - "
				    "or _, but not `export'", name, RECEIVER_NAME_MAX);
	copy = strdup(name);
	if (!copy || asprintf(&directory, "/var/lib/stacktap/spool-%s", name) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*receiver = (struct receiver){
		.name = copy,
		.compression = COMPRESSION_GZIP,
		.timeout_seconds = 10,
		.spool_directory = directory,
		.spool_max_bytes = 256 << 20,
		.spool_max_age_hours = 24,
	};
	return 0;
}

void receiver_done(struct receiver *receiver)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		option_done(&options[i], receiver);
	free(receiver->name);
	*receiver = (struct receiver){ 0 };
}

int receiver_set(struct receiver *receiver, const char *option, const char *text, char *error, size_t error_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(options[i].name, option))
			return option_set(&options[i], receiver, text, error, error_size);
	return fail_invalid(error, error_size,
			    "unknown option `%s' in section [destination %s]", option,
			    receiver->name);
}

int receiver_check(const struct receiver *receiver, char *error, size_t error_size)
{
	if (!receiver->endpoint)
		return fail_invalid(error, error_size,
				    "[destination %s] has no endpoint", receiver->name);
	if (!environment_is_url(receiver->endpoint))
		return fail_invalid(error, error_size,
				    "endpoint of [destination %s] must begin with http://, https:// or "
				    "unix:/", receiver->name);
	if (receiver->kernel_suffix && strlen(receiver->kernel_suffix) >= ENCODE_MAX_SUFFIX)
		return fail_invalid(error, error_size,
				    "kernel_suffix of [destination %s] may have at most %d bytes",
				    receiver->name, ENCODE_MAX_SUFFIX - 1);
	if (receiver->headers && !environment_is_pairs(receiver->headers))
		return fail_invalid(error, error_size,
				    "headers of [destination %s] are not of the form "
				    "key=value,key=value", receiver->name);
	return 0;
}

bool receiver_same(const struct receiver *a, const struct receiver *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!option_same(&options[i], a, b))
			return false;
	return !strcmp(a->name, b->name);
}

void receiver_dump(const struct receiver *receiver, FILE *stream)
{
	fprintf(stream, "[destination %s]\n", receiver->name);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		option_dump(&options[i], receiver, stream);
}
