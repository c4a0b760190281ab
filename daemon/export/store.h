/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of files profiles-<Unix ms>.otlp of sealed messages (export/record.h), oldest removed by
 * size and by age. It is the local store, which keeps them, and the spool, which gives them up once
 * they are taken: both the same format, so that either can be pointed at the other's directory.
 *
 * A new file is begun at a 16th of the size and every hour; files are removed whole. Finished files are
 * synced to disk, the open one by store_sync(). Age is that of a file's last message, by a clock that nobody sets for
 * what this run wrote, else by the wall clock, not before ten minutes after store_open(). What a crash or a power cut tore is found by length and
 * checksum, passed over and counted. Not thread-safe. An open store holds a lock on its directory.
 */
#ifndef STACKTAP_EXPORT_STORE_H
#define STACKTAP_EXPORT_STORE_H

#include "base/macro.h"

struct encode_form;
struct store;

struct store_options {
	const char *directory;		/* its parent exists */
	uint64_t max_bytes;
	uint64_t max_age_ms;		/* 0: no limit */
	bool is_spool;			/* messages wait to be taken */
	/* that windows of a journal that is found there get; NULL: that of the daemon that wrote it */
	const struct encode_form *recovered_form;
};

/* -EBUSY: another process has the store open. */
int store_open(const struct store_options *options, struct store **ret_store);
/*
 * -EFBIG: more than max_bytes. -ESTALE: its directory was removed: close it and open it again. After any error the
 * store is as before.
 */
int store_append(struct store *store, const uint8_t *data, size_t size, uint64_t samples);
/* Files that became too old go. */
void store_expire(struct store *store);
/* What was appended survives a power cut from now on. */
int store_sync(struct store *store);
void store_close(struct store *store);

/* Of a spool. */
struct store_message {
	uint8_t *data;			/* the caller frees it */
	size_t size;
	uint64_t samples;
};
/*
 * The oldest message that waits: 1; 0: none does; -EAGAIN: it cannot be read now, and stays. Damaged ones, and those of more than @max_bytes, are passed over and counted.
 */
int store_oldest(struct store *store, size_t max_bytes, struct store_message *ret_message);
/*
 * The number of the oldest message that waits, which no other has as long as nobody takes away what is at the end; the
 * newest has this and how many wait, less one.
 */
uint64_t store_first(const struct store *store);
/* Take back what store_append() has just added. */
void store_retract(struct store *store, size_t size, uint64_t samples);
/* The oldest is done with. A crash in here leaves it or not; nothing else is touched. */
void store_take(struct store *store);

struct store_stats {
	uint64_t bytes, files;
	uint64_t messages, samples;		/* that wait, of a spool */
	/* removed unsent, of a spool; how many were in what a crash cut off nobody knows: they count as 1 */
	uint64_t full_messages, full_samples, old_messages, old_samples;
	uint64_t damaged_messages, damaged_samples, damaged_bytes;
};
struct store_stats store_stats(const struct store *store);

#endif /* STACKTAP_EXPORT_STORE_H */
