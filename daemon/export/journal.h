/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the open windows hold so far, on disk: cuts of them (export/cut.h) that a later run sends if this
 * one is killed, in files journal-<Unix ms>.bin of records (export/journal_record.h) in the directory of
 * the store or spool. A file has cuts of several windows, and says which of these are in the store or
 * spool by now; it goes when all are and another one has been begun. store_open() makes files of its own
 * of those that it finds.
 *
 * Not synced: what kill -9 leaves is whole, a power cut may take it. From any thread.
 */
#ifndef STACKTAP_EXPORT_JOURNAL_H
#define STACKTAP_EXPORT_JOURNAL_H

#include "export/encode_options.h"

struct journal;

struct journal_stats {
	uint64_t parts, samples;	/* written */
	uint64_t bytes;
	uint64_t refused;		/* parts that found no room, or no disk */
	/* of runs that were killed, what stores of this process found, whichever journal it was of */
	uint64_t recovered_samples;
	uint64_t damaged_bytes;
	uint64_t foreign_files;		/* of another version, which were not read */
	uint64_t copies_failed;		/* that another destination's spool lacks: journal_share_failed() */
};

/* @max_bytes of all its files together. */
int journal_new(uint64_t max_bytes, struct journal **ret_journal);
/* Where it is from now on; what is open elsewhere is left to itself. */
int journal_open(struct journal *journal, const char *directory);
/*
 * Add a cut of a window, by one write; @begins: to a file of its own. -EALREADY: the window is done, which a file is not
 * begun for, -EFBIG: no room, -ENOTDIR: open nowhere, -ESTALE: what it goes on from is not there. After an error, the
 * next one has to begin a file.
 */
int journal_add(struct journal *journal, uint64_t window, const uint8_t *data, size_t size,
		uint64_t samples, bool begins);
/* Bytes that one of its files is to have at most before the next one is begun; 0: it is open nowhere. Waits for nothing. */
uint64_t journal_room(const struct journal *journal);
/* All windows up to this one need it no more. */
void journal_done(struct journal *journal, uint64_t window);
/* Windows that are not done keep their file. */
void journal_free(struct journal *journal);		/* NULL is fine */
struct journal_stats journal_stats(struct journal *journal);

/*
 * For store_open(): windows that a killed run left in a directory get into files with the names that @name makes, in @form
 * as recover() has it; returns how many files.
 */
size_t journal_adopt(int directory, const struct encode_form *form,
		     void (*name)(uint64_t time, char *ret_name, size_t size));

/* Is it the name of a file of a journal? @ret_is_old: of versions whose journal was OTLP. */
bool journal_parse(const char *text, uint64_t *ret_time, bool *ret_is_old);

#endif /* STACKTAP_EXPORT_JOURNAL_H */
