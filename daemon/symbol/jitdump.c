// SPDX-License-Identifier: Apache-2.0
#include "symbol/jitdump.h"

#include "base/clock.h"

enum {
	MAGIC = 0x4a695444,
	VERSION = 1,
	HEADER_MAX = 4096,
	LOOK_RECORDS = 64,	/* between two looks at the deadline */
};

enum {
	JIT_CODE_LOAD = 0,
	JIT_CODE_MOVE = 1,
};

struct dump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct dump_record {
	uint32_t id, total_size;
	uint64_t timestamp;
	union {
		struct {
			uint32_t pid, tid;
			uint64_t vma, code_addr, code_size, code_index;
		} load;		/* then the name, with its NUL, and the code */
		struct {
			uint32_t pid, tid;
			uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
		} move;
	};
};

enum {
	PREFIX_BYTES = offsetof(struct dump_record, load),
	LOAD_BYTES = PREFIX_BYTES + 40,
	MOVE_BYTES = PREFIX_BYTES + 48,
};

_Static_assert(sizeof(struct dump_record) == MOVE_BYTES, "as in the file");

static int read_header(int fd, uint64_t size, uint64_t *ret_end)
{
	struct dump_header header;
	ssize_t n = pread(fd, &header, sizeof(header), 0);

	if (n < 0)
		return -errno;
	/* it is being written */
	if (n < (ssize_t)sizeof(header) || size < sizeof(header))
		return -EAGAIN;
	if (header.magic != MAGIC || header.version != VERSION ||
	    header.total_size < sizeof(header) || header.total_size > HEADER_MAX)
		return -EBADMSG;
	if (size < header.total_size)
		return -EAGAIN;
	*ret_end = header.total_size;
	return 0;
}

/* The newest function that began at @start: of those that no table has yet, or of the table. */
static const struct code *find_old(const struct code_batch *batch, uint64_t start)
{
	const struct code *code;

	for (size_t i = batch->count; i > 0; i--)
		if (batch->codes[i - 1].start == start)
			return &batch->codes[i - 1];
	code = code_table_find(batch->table, start);
	return code && code->start == start ? code : NULL;
}

static int take_record(struct code_batch *batch, const struct dump_record *record, uint64_t offset,
		       struct code_read *read)
{
	const struct code *old;

	if (record->id == JIT_CODE_LOAD)
		return record->total_size <= LOAD_BYTES ? -EINVAL :
		       code_batch_add(batch, record->load.code_addr, record->load.code_size,
				      offset + LOAD_BYTES);
	if (record->id != JIT_CODE_MOVE)
		return 0;
	if (record->total_size < MOVE_BYTES)
		return -EINVAL;
	old = find_old(batch, record->move.old_code_addr);
	if (!old) {
		read->needs_all = true;
		return -EINVAL;
	}
	return code_batch_add(batch, record->move.new_code_addr, record->move.code_size, old->name);
}

int jitdump_read(int fd, uint64_t offset, uint64_t size, uint64_t deadline,
		 struct code_read *ret_read)
{
	struct code_batch batch = { .table = &ret_read->table };
	int r = 0;

	*ret_read = (struct code_read){ .end = offset };
	size = min_of(size, CODE_FILE_MAX);
	if (!offset)
		r = read_header(fd, size, &ret_read->end);
	if (r == -EAGAIN)
		return 0;
	for (unsigned int i = 0; !r && ret_read->end < size; i++) {
		struct dump_record record = { 0 };
		ssize_t n;

		if (i % LOOK_RECORDS == 0 && clock_monotonic() >= deadline)
			break;
		n = pread(fd, &record, sizeof(record), (off_t)ret_read->end);
		if (n < PREFIX_BYTES) {
			r = n < 0 ? -errno : 0;
			break;
		}
		if (record.total_size < PREFIX_BYTES) {
			ret_read->bad++;
			break;
		}
		if (record.total_size > size - ret_read->end)
			break;
		r = take_record(&batch, &record, ret_read->end, ret_read);
		ret_read->bad += r == -EINVAL;
		r = r == -ENOMEM ? r : 0;
		ret_read->end += record.total_size;
	}
	if (!r)
		r = code_batch_flush(&batch);
	code_batch_free(&batch);
	if (r < 0)
		code_table_free(&ret_read->table);
	ret_read->needs_all &= offset > 0;
	return r;
}
