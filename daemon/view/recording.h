/* SPDX-License-Identifier: Apache-2.0 */
/* A file of OTLP profiles, a store's directory of them, or standard input, from the first message to the last. */
#ifndef STACKTAP_VIEW_RECORDING_H
#define STACKTAP_VIEW_RECORDING_H

#include "view/reader.h"

/*
 * Every message into @reader, whose selection is @selection (NULL: all). "-" is standard input. -errno of open,
 * read and reader_add(), -ENODATA: no profiles; *ret_error gets a sentence and may be NULL.
 * *ret_is_cut: the last message, or that of a file before a store's last, is cut off and left out. A store may be
 * one that the daemon is writing to; files from before the selection are not read.
 */
int recording_read(const char *path, const struct selection *selection, struct reader *reader,
		   bool *ret_is_cut, char *ret_error, size_t error_size);
/*
 * The same, and once @reader has all of it @again makes another reader, which gets the same messages; NULL: that is
 * not needed; of a store those of the files that its selection wants. Asked for it nobody needs the first reader any more. What
 * was removed or damaged meanwhile is left out, without an error. What can be read once only is kept in a file without a name,
 * in $TMPDIR or /tmp; where that fails @again is not asked. No error of the second pass is one of the first, which is complete.
 */
struct recording_again {
	int (*begin)(void *ctx, struct reader **ret_reader);	/* -E2BIG */
	void *ctx;
	const struct selection *selection;	/* of that reader; NULL: the first one's */
	bool is_cut;		/* set: as *ret_is_cut, of the second pass */
	int err;		/* set to -E2BIG, -ENOMEM: the second pass was given up; 0: it was not */
	int copy_err;		/* set to -errno: the copy failed, and there was no second pass */
};
/* Where a copy is, and how large it may be. */
const char *recording_copy_place(void);
#define RECORDING_COPY_MAX ((uint64_t)1 << 30)
int recording_read_twice(const char *path, const struct selection *selection, struct reader *reader,
			 struct recording_again *again, bool *ret_is_cut, char *ret_error,
			 size_t error_size);
/*
 * Widen @span, which begins as UINT64_MAX and 0, by a message's Profiles, and add their samples to *samples (may be
 * NULL). -EBADMSG, -E2BIG.
 */
int recording_widen(const uint8_t *data, size_t size, struct time_span *span, uint64_t *samples);
/* Is the first message of a file one of OTLP profiles? An error as recording_read() has it. */
int recording_check(int fd, const char *name, char *ret_error, size_t error_size);
/* For a process of one thread: @watch is told of each message that is read, and of the end of each pass. */
void recording_watch(void (*watch)(size_t bytes, bool is_done));
/* What helps where something "needs more memory than is allowed". */
#define RECORDING_NARROW "select less with --since, --from and --to, --service or --process"
/* With its name. */
#define RECORDING_TOO_LARGE "%s needs more memory than is allowed: " RECORDING_NARROW
/* -ENODATA, or -EBADMSG if it @is_cut, as nothing in it was read; @has_no_files: of a store. */
int recording_fail_empty(const char *name, bool is_cut, bool has_no_files, char *ret_error, size_t error_size);
/* -EBADMSG, of a message, from 1. */
int recording_fail_damaged(const char *name, int fd, uint64_t message, char *ret_error, size_t error_size);
/* How a path is called in a sentence. */
const char *recording_name(const char *path);
/* What helps where @path cannot be opened for @err: a blank and a sentence, or "". */
const char *recording_remedy(const char *path, int err);

#endif /* STACKTAP_VIEW_RECORDING_H */
