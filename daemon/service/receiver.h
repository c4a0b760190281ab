/* SPDX-License-Identifier: Apache-2.0 */
/* A section [destination NAME] of the configuration: an OTLP receiver beside the one of [export]. */
#ifndef STACKTAP_SERVICE_RECEIVER_H
#define STACKTAP_SERVICE_RECEIVER_H

#include "base/macro.h"

enum { RECEIVER_NAME_MAX = 32 };

/* Of frames without a name; [profile]'s, or this one's own. */
enum receiver_unnamed { UNNAMED_AS_PROFILE, UNNAMED_ADDRESS, UNNAMED_RANGE };

/* Whether Functions stand twice; the same. */
enum receiver_repeats { REPEATS_AS_PROFILE, REPEATS_NOT, REPEATS_FUNCTIONS };

struct receiver {
	char *name;
	char *endpoint;			/* base URL */
	unsigned int protocol, compression; /* as in [export] */
	char *headers, *headers_file, *certificate, *client_certificate, *client_key;
	uint64_t timeout_seconds;
	unsigned int unnamed;		/* enum receiver_unnamed */
	char *kernel_suffix;		/* NULL: as in [profile] */
	unsigned int repeats;		/* enum receiver_repeats */
	char *spool_directory;		/* NULL: none */
	uint64_t spool_max_bytes;
	uint64_t spool_max_age_hours;	/* 0: no limit */
};

/* The defaults. -EINVAL and a sentence: that is no name. */
int receiver_init(struct receiver *receiver, const char *name, char *error, size_t error_size);
void receiver_done(struct receiver *receiver);
int receiver_set(struct receiver *receiver, const char *option, const char *text, char *error, size_t error_size);
int receiver_check(const struct receiver *receiver, char *error, size_t error_size);
bool receiver_same(const struct receiver *a, const struct receiver *b);
void receiver_dump(const struct receiver *receiver, FILE *stream);

#endif /* STACKTAP_SERVICE_RECEIVER_H */
