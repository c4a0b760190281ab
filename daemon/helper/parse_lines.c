// SPDX-License-Identifier: Apache-2.0
#include "helper/parse_lines.h"

#include <malloc.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "helper/memfd.h"
#include "symbol/dwarf_index_file.h"
#include "symbol/packed.h"

/* Opened by PARSE_DWARF; the descriptors are its own. */
static struct lines *lines;
static int lines_fds[DWARF_PARTS] = { -1, -1, -1 };

void parse_lines_close(void)
{
	if (!lines)
		return;
	lines_free(lines);
	lines = NULL;
	for (size_t i = 0; i < DWARF_PARTS; i++)
		if (lines_fds[i] >= 0)
			close(steal_fd(&lines_fds[i]));
	malloc_trim(0);
}

int parse_unpack(struct serve_request *request, const struct parse_file *file, uint64_t *ret_size)
{
	_cleanup_close_ int plain = -1;
	int r;

	*ret_size = file->size;
	if (!file->may_be_packed)
		return 0;
	plain = memfd_new();
	r = plain < 0 ? plain : packed_unpack(request->fd, file->size, parse_deadline(file), plain, ret_size);
	malloc_trim(0);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	close(request->fd);
	request->fd = steal_fd(&plain);
	return 0;
}

int parse_lines_facts(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_file *file = request->payload;
	uint64_t size;
	int r = parse_unpack(request, file, &size);

	answer->bytes = sizeof(struct lines_facts);
	return r ?: lines_facts(request->fd, size, parse_deadline(file), (void *)answer->payload);
}

int parse_lines_link(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_file *file = request->payload;
	struct elf elf;
	int r = elf_open(&elf, request->fd, file->size, parse_deadline(file));

	if (r < 0)
		return r;
	lines_link(&elf, (void *)answer->payload);
	elf_close(&elf);
	answer->bytes = sizeof(struct lines_link);
	return 0;
}

int parse_lines_dwarf(struct serve_request *request, struct serve_answer *answer _unused_)
{
	const struct parse_dwarf *dwarf = request->payload;
	int *fd = &lines_fds[min_of(dwarf->part, (uint8_t)DWARF_PART_SPLIT)];
	uint64_t size;
	int r;

	if (dwarf->part == DWARF_PART_DWO)
		return lines ? lines_set_dwo(lines, dwarf->number, &request->fd, dwarf->file.size,
					     parse_deadline(&dwarf->file)) : -ESTALE;
	if (dwarf->part != DWARF_PART_FILE) {
		if (!lines || *fd >= 0)
			return -ESTALE;
		*fd = steal_fd(&request->fd);
		return (dwarf->part == DWARF_PART_ALT ? lines_set_alt : lines_set_split)(
			lines, *fd, dwarf->file.size, parse_deadline(&dwarf->file));
	}
	parse_lines_close();
	r = parse_unpack(request, &dwarf->file, &size);
	if (!r)
		r = lines_open(request->fd, size, !dwarf->symbols_only, parse_deadline(&dwarf->file), &lines);
	if (!r)
		*fd = steal_fd(&request->fd);
	return r;
}

int parse_lines_load_index(struct serve_request *request, struct serve_answer *answer _unused_)
{
	const struct parse_index *index = request->payload;
	_cleanup_free_ void *bytes = NULL;
	int r;

	if (!lines)
		return -ESTALE;
	if (index->size > DWARF_INDEX_BYTES_MAX)
		return -EFBIG;
	bytes = malloc(index->size + 1);
	r = bytes ? memfd_read(request->fd, bytes, index->size, 0) : -ENOMEM;
	return r ?: lines_load_index(lines, bytes, index->size);
}

int parse_lines_save_index(struct serve_request *request _unused_, struct serve_answer *answer)
{
	_cleanup_free_ void *bytes = NULL;
	_cleanup_close_ int fd = -1;
	struct parse_index *index = (void *)answer->payload;
	size_t size;
	int r = lines ? lines_save_index(lines, &bytes, &size) : -ESTALE;

	if (r < 0)
		return r;
	fd = memfd_new();
	r = fd < 0 ? fd : file_write(fd, bytes, size);
	if (!r)
		r = memfd_seal(&fd);
	if (r < 0)
		return r;
	answer->fd = r;
	answer->bytes = sizeof(*index);
	index->size = size;
	return 0;
}

static int write_lines(const struct lines_answer *found, uint32_t count,
		       struct parse_lines_answer *ret_answer)
{
	_cleanup_close_ int fd = memfd_new();
	int r = fd < 0 ? fd : 0;

	*ret_answer = (struct parse_lines_answer){
		.frame_count = found->frame_count, .string_bytes = found->string_bytes,
		.split = found->split,
	};
	if (!r)
		r = file_write(fd, found->counts, count * sizeof(*found->counts));
	if (!r)
		r = file_write(fd, found->frames, found->frame_count * sizeof(*found->frames));
	if (!r)
		r = file_write(fd, found->strings, found->string_bytes);
	return r < 0 ? r : memfd_seal(&fd);
}

int parse_lines_find(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_lines *question = request->payload;
	static struct lines_answer found;
	int r;

	if (!lines)
		return -ESTALE;
	if (question->count > LINES_ADDRESSES_MAX)
		return -E2BIG;
	r = lines_find(lines, question->addresses, question->count,
		       clock_monotonic() + question->limit_ms * NSEC_PER_MSEC, &found);
	if (r < 0)
		return r;
	answer->bytes = sizeof(struct parse_lines_answer);
	r = write_lines(&found, question->count, (void *)answer->payload);
	lines_answer_free(&found);
	if (r < 0)
		return r;
	answer->fd = r;
	return 0;
}

int parse_lines_dwos(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_lines *question = request->payload;
	struct parse_dwos_answer *to = (void *)answer->payload;

	if (!lines)
		return -ESTALE;
	if (question->count > LINES_ADDRESSES_MAX)
		return -E2BIG;
	answer->bytes = sizeof(*to);
	return lines_find_dwos(lines, question->addresses, question->count,
			       clock_monotonic() + question->limit_ms * NSEC_PER_MSEC, &to->count, &to->addresses);
}

int parse_lines_dwo_names(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_dwo *dwo = request->payload;

	answer->bytes = sizeof(struct dwarf_dwo_names);
	memset(answer->payload, 0, sizeof(struct dwarf_dwo_names));
	return lines ? lines_dwo_names(lines, dwo->number, clock_monotonic() + dwo->limit_ms * NSEC_PER_MSEC,
				       (void *)answer->payload) : -ESTALE;
}
