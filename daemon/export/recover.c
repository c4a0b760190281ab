// SPDX-License-Identifier: Apache-2.0
#include "export/recover.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "export/cut_reader.h"
#include "export/encode.h"
#include "export/record.h"

#define FILE_MAX ((uint64_t)64 << 20)	/* no daemon makes a file as large as that */

struct recovery {
	int from, to;
	const struct encode_form *form;	/* NULL: the file's */
	uint64_t end;			/* of @from */
	uint64_t written;		/* bytes of @to */
	uint64_t done;			/* windows up to this one */
	uint64_t window_bytes;		/* of the cuts of the window that is read */
	bool is_alone;			/* nothing else is in the pool: what does not fit never will */
	struct buffer record;
	struct cut_reader *reader;
	struct recovered *recovered;
};

static bool never_fits(const struct recovery *recovery, int err)
{
	return err == -ENOBUFS && recovery->is_alone;
}

/* The record at *offset, which then is behind it; -ENODATA: there is no whole one. */
static int next_record(struct recovery *recovery, uint64_t *offset, uint32_t *sum, enum journal_kind *ret_kind)
{
	uint8_t frame[JOURNAL_FRAME];
	size_t size;
	int err;

	if (recovery->end - *offset < sizeof(frame))
		return -ENODATA;
	err = file_pread(recovery->from, frame, sizeof(frame), *offset);
	if (err)
		return err;
	if (journal_frame_size(frame, &size) || size > recovery->end - *offset - sizeof(frame))
		return -ENODATA;
	recovery->record.size = 0;
	if (!buffer_reserve(&recovery->record, size))
		return -ENOBUFS;
	recovery->record.size = size;
	err = file_pread(recovery->from, recovery->record.data, size, *offset + sizeof(frame));
	if (err)
		return err;
	if (journal_frame_check(frame, recovery->record.data, size, sum, ret_kind))
		return -ENODATA;
	*offset += sizeof(frame) + size;
	return 0;
}

/* Windows may be done long after their last cut: that is known first. */
static int find_done(struct recovery *recovery, uint32_t sum, uint64_t *ret_end)
{
	uint64_t offset = JOURNAL_HEAD, number;
	enum journal_kind kind;
	int err;

	while (!(err = next_record(recovery, &offset, &sum, &kind))) {
		if (kind != JOURNAL_DONE || recovery->record.size != sizeof(number))
			continue;
		memcpy(&number, recovery->record.data, sizeof(number));
		recovery->done = max_of(recovery->done, le64toh(number));
	}
	*ret_end = offset;
	return err == -ENODATA || never_fits(recovery, err) ? 0 : err;
}

static int write_payload(void *ctx, struct payload *payload)
{
	struct recovery *recovery = ctx;
	uint8_t seal[RECORD_SEAL];
	int err;

	record_seal(payload->data, payload->size, payload->samples, seal);
	err = record_write(recovery->to, &recovery->written, payload->data, payload->size, seal);
	free(steal_ptr(payload->data));
	recovery->recovered->samples += err ? 0 : payload->samples;
	return err;
}

static int write_window(struct recovery *recovery)
{
	const struct window *window = cut_reader_window(recovery->reader);
	const uint64_t bytes = recovery->window_bytes;
	struct encode_options options = *cut_reader_options(recovery->reader);
	int err;

	options.wants_all = true;
	if (recovery->form)
		options.form = *recovery->form;
	recovery->window_bytes = 0;
	if (!window || window->number <= recovery->done)
		return 0;
	recovery->recovered->windows++;
	err = encode_window(&options, window, write_payload, recovery);
	if (!never_fits(recovery, err))
		return err;
	recovery->recovered->damaged_bytes += bytes;
	return 0;
}

/* The window before has all that the file has of it. */
static int add_cut(struct recovery *recovery, uint64_t *number)
{
	const uint64_t before = *number;
	int err = cut_number(recovery->record.data, recovery->record.size, number);

	if (!err && *number != before)
		err = write_window(recovery);
	err = err ?: cut_reader_add(recovery->reader, recovery->record.data, recovery->record.size);
	recovery->window_bytes += err ? 0 : recovery->record.size;
	return err;
}

static int read_cuts(struct recovery *recovery, uint32_t sum, uint64_t end)
{
	uint64_t offset = JOURNAL_HEAD, before = offset, number = 0;
	enum journal_kind kind;
	int err = 0;

	while (!err && offset < end) {
		before = offset;
		err = next_record(recovery, &offset, &sum, &kind);
		if (!err && kind == JOURNAL_CUT)
			err = add_cut(recovery, &number);
	}
	/* none that this version writes, or too much: nothing behind it can be understood */
	if (err == -EBADMSG || never_fits(recovery, err)) {
		recovery->recovered->damaged_bytes += end - before;
		err = 0;
	}
	return err ?: write_window(recovery);
}

int recover(int from, int to, const struct encode_form *form, struct recovered *ret_recovered)
{
	struct recovery recovery = { .from = from, .to = to, .form = form, .recovered = ret_recovered,
				     .is_alone = !pool_get(POOL_AGGREGATE)->used };
	uint8_t head[JOURNAL_HEAD];
	struct stat st;
	uint32_t sum;
	uint64_t end;
	int err;

	*ret_recovered = (struct recovered){ 0 };
	if (fstat(from, &st))
		return -errno;
	recovery.end = min_of((uint64_t)st.st_size, FILE_MAX);
	err = recovery.end < sizeof(head) ? -EBADMSG : file_pread(from, head, sizeof(head), 0);
	err = err ?: journal_head_check(head, &sum, ret_recovered->version);
	if (err == -EBADMSG)
		ret_recovered->damaged_bytes = (uint64_t)st.st_size;
	if (err)
		return err == -EBADMSG ? 0 : err;
	buffer_init(&recovery.record, POOL_AGGREGATE);
	err = cut_reader_new(&recovery.reader) ?: find_done(&recovery, sum, &end);
	if (!err) {
		ret_recovered->damaged_bytes = (uint64_t)st.st_size - end;
		err = read_cuts(&recovery, sum, end);
	}
	cut_reader_free(recovery.reader);
	buffer_free(&recovery.record);
	return err;
}
