/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the open windows hold so far, on disk: parts that a later run sends if this one is killed. One file
 * journal-<Unix ms>.otlp for each window, of sealed messages (export/record.h) that may continue each other
 * (export/chain.h), in the directory of the store or spool; it goes when the window's payloads are there.
 * store_open() makes files of its own of those that it finds.
 *
 * Not synced: what kill -9 leaves is whole, a power cut may take it. From any thread.
 */
#ifndef STACKTAP_EXPORT_JOURNAL_H
#define STACKTAP_EXPORT_JOURNAL_H

#include "base/macro.h"

struct journal;

struct journal_stats {
	uint64_t parts, samples;	/* written */
	uint64_t bytes;
	uint64_t refused;		/* parts that found no room, or no disk */
};

/* @max_bytes of all its files together. */
int journal_new(uint64_t max_bytes, struct journal **ret_journal);
/* Where it is from now on; what is open elsewhere is left to itself. */
int journal_open(struct journal *journal, const char *directory);
/*
 * Add a part of a window. -EALREADY: the window is done, -EFBIG: no room, -ENOTDIR: open nowhere, -ESTALE: there is
 * nothing that it continues.
 */
int journal_add(struct journal *journal, uint64_t window, const uint8_t *data, size_t size,
		uint64_t samples, bool continues);
/* Waits for nothing. */
bool journal_is_open(const struct journal *journal);
/* All windows up to this one need it no more. */
void journal_done(struct journal *journal, uint64_t window);
/* Windows that are not done keep their files. */
void journal_free(struct journal *journal);		/* NULL is fine */
struct journal_stats journal_stats(struct journal *journal);

/* For store_open(): what a killed run left in a directory gets the names that @name makes; returns how many. */
size_t journal_adopt(int directory, void (*name)(uint64_t time, char *ret_name, size_t size));

/* What a killed run left in @from, copied to @to, for both to have it; before the stores of either are opened. */
void journal_share(const char *from, const char *to);

#endif /* STACKTAP_EXPORT_JOURNAL_H */
