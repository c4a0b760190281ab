// SPDX-License-Identifier: Apache-2.0
/* Asking the parser for source lines and instructions. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "helper/memfd.h"
#include "helper/parser.h"
#include "helper/parser_ask.h"
#include "symbol/dwarf_index_file.h"

/* Who does not wait has no time for that. */
static bool may_be_packed(uint32_t limit_ms)
{
	return limit_ms >= PARSER_LINES_MS;
}

int parser_debug(struct parser *parser, const struct object *object, int fd, uint32_t limit_ms,
		 struct lines_facts *ret_facts)
{
	const struct parse_file file = { .size = object->size, .limit_ms = limit_ms, .may_be_packed = may_be_packed(limit_ms) };
	struct helper_call call = {
		.op = PARSE_DEBUG, .fd = fd, .timeout_ms = limit_ms + GRACE_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = ret_facts, .answer_bytes = sizeof(*ret_facts),
	};
	unsigned int tries = limit_ms >= PARSER_LINES_MS ? PARSER_TRIES : 1;
	int r;

	do
		r = parser_ask(parser, object, &call);
	while (parser_may_try_again(parser, r, &tries));
	if (r < 0)
		return r;
	return ret_facts->segment_count <= LINES_SEGMENTS_MAX &&
	       parser_is_hex(ret_facts->htlhash, sizeof(ret_facts->htlhash)) &&
	       parser_is_id(ret_facts->build_id, sizeof(ret_facts->build_id)) &&
	       parser_is_id(ret_facts->alt_build_id, sizeof(ret_facts->alt_build_id)) &&
	       (!ret_facts->alt_build_id[0] || ret_facts->alt_build_id[2]) &&
	       memchr(ret_facts->alt_link, '\0', sizeof(ret_facts->alt_link)) &&
	       memchr(ret_facts->link.name, '\0', sizeof(ret_facts->link.name)) ? 0 : -EBADMSG;
}

static int open_dwarf(struct parser *parser, const struct object *object, int fd,
		      const struct parse_dwarf *dwarf)
{
	struct helper_call call = {
		.op = PARSE_DWARF, .fd = fd, .timeout_ms = dwarf->file.limit_ms + GRACE_MS,
		.request = dwarf, .request_bytes = sizeof(*dwarf),
	};

	return parser_ask(parser, object, &call);
}

static int open_part(struct parser *parser, const struct object *object, uint8_t part, const struct parser_part *of,
		     uint32_t limit_ms)
{
	const struct parse_dwarf dwarf = { .file = { .size = of->size, .limit_ms = limit_ms }, .part = part };

	return open_dwarf(parser, of->suspect ? of->suspect : object, of->fd, &dwarf);
}

int parser_open_lines(struct parser *parser, const struct object *object, int fd, bool with_dwarf,
		      const struct parser_part *alt, const struct parser_part *split, uint32_t limit_ms)
{
	const struct parse_dwarf dwarf = {
		.file = { .size = object->size, .limit_ms = limit_ms, .may_be_packed = may_be_packed(limit_ms) },
		.symbols_only = !with_dwarf,
	};
	int r = open_dwarf(parser, object, fd, &dwarf);

	if (!r && alt && alt->fd >= 0)
		r = open_part(parser, object, DWARF_PART_ALT, alt, limit_ms);
	if (!r && split && split->fd >= 0)
		r = open_part(parser, object, DWARF_PART_SPLIT, split, limit_ms);
	return r;
}

int parser_load_index(struct parser *parser, const struct object *object, int fd, uint64_t size, uint32_t limit_ms)
{
	const struct parse_index index = { .size = size };
	struct helper_call call = {
		.op = PARSE_LOAD_INDEX, .fd = fd, .timeout_ms = limit_ms + GRACE_MS,
		.request = &index, .request_bytes = sizeof(index),
	};

	return parser_ask(parser, object, &call);
}

int parser_save_index(struct parser *parser, const struct object *object, uint32_t limit_ms, int *ret_fd, uint64_t *ret_size)
{
	struct parse_index index;
	struct helper_call call = {
		.op = PARSE_SAVE_INDEX, .fd = -1, .timeout_ms = limit_ms + GRACE_MS,
		.answer = &index, .answer_bytes = sizeof(index), .wants_fd = true,
	};
	int r = parser_ask(parser, object, &call);

	if (r < 0)
		return r;
	if (!memfd_is_sealed(call.ret_fd, ret_size) || *ret_size != index.size ||
	    *ret_size > DWARF_INDEX_BYTES_MAX) {
		close(call.ret_fd);
		return -EBADMSG;
	}
	*ret_fd = call.ret_fd;
	return 0;
}

int parser_link(struct parser *parser, const struct object *object, int fd, struct lines_link *ret_link)
{
	const struct parse_file file = { .size = object->size, .limit_ms = PARSER_READ_MS };
	struct helper_call call = {
		.op = PARSE_LINK, .fd = fd, .timeout_ms = PARSER_READ_MS + GRACE_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = ret_link, .answer_bytes = sizeof(*ret_link),
	};
	int r = parser_ask_for_names(parser, object, &call);

	if (r < 0)
		return r;
	if (!memchr(ret_link->name, '\0', sizeof(ret_link->name)))
		return -EBADMSG;
	/* a name, and no way out of the directory */
	return ret_link->name[0] && !strchr(ret_link->name, '/') ? 0 : -ENODATA;
}

/* Each string ends inside what there is of strings. */
static bool are_lines(const struct lines_answer *answer, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (answer->counts[i] > LINES_FRAMES_MAX)
			return false;
		sum += answer->counts[i];
	}
	if (sum != answer->frame_count || answer->strings[0])
		return false;
	for (uint32_t i = 0; i < answer->frame_count; i++)
		if (answer->frames[i].name >= answer->string_bytes ||
		    answer->frames[i].file >= answer->string_bytes)
			return false;
	return true;
}

static int adopt_lines(int fd, const struct parse_lines_answer *said, uint32_t count,
		       struct lines_answer *ret_answer)
{
	const size_t counts = count * sizeof(*ret_answer->counts);
	uint64_t size, frames = (uint64_t)said->frame_count * sizeof(*ret_answer->frames);

	if (!memfd_is_sealed(fd, &size) || said->frame_count > count * LINES_FRAMES_MAX ||
	    !said->string_bytes || said->string_bytes > LINES_STRINGS_MAX ||
	    size != counts + frames + said->string_bytes)
		return -EBADMSG;
	ret_answer->frame_count = said->frame_count;
	ret_answer->string_bytes = said->string_bytes;
	ret_answer->split = said->split;
	ret_answer->frames = malloc(frames + 1);
	ret_answer->strings = memfd_text(fd, counts + frames, said->string_bytes);
	if (!ret_answer->frames || !ret_answer->strings ||
	    memfd_read(fd, ret_answer->counts, counts, 0) < 0 ||
	    memfd_read(fd, ret_answer->frames, frames, counts) < 0)
		return -ENOMEM;
	return are_lines(ret_answer, count) ? 0 : -EBADMSG;
}

int parser_lines(struct parser *parser, const struct object *object, const uint64_t *addresses,
		 uint32_t count, uint32_t limit_ms, struct lines_answer *ret_answer)
{
	struct parse_lines question = { .count = count, .limit_ms = limit_ms };
	struct parse_lines_answer said;
	struct helper_call call = {
		.op = PARSE_LINES, .fd = -1, .timeout_ms = limit_ms + GRACE_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = &said, .answer_bytes = sizeof(said), .wants_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	int r;

	memset(ret_answer, 0, sizeof(*ret_answer));
	memcpy(question.addresses, addresses, count * sizeof(*addresses));
	r = parser_ask(parser, object, &call);
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	r = adopt_lines(memfd, &said, count, ret_answer);
	if (r < 0)
		lines_answer_free(ret_answer);
	return r;
}

int parser_begin_lines(struct parser *parser, struct parser_work *ret_work)
{
	int r;

	*ret_work = parser_begin(parser);
	r = parser_may_ask(parser, ret_work->began, PARSER_READ_MS);
	parser->is_paid = !r;
	return r;
}

void parser_end_lines(struct parser *parser, const struct parser_work *work)
{
	parser->is_paid = false;
	parser_spend(parser, work);
}

/* Without a gap, inside of what was asked for, and texts end inside what there is of strings. */
static bool are_instructions(const struct disassembly *code, uint64_t start, uint32_t size)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < code->count; i++) {
		const struct instruction *instruction = &code->instructions[i];

		if (!instruction->size || instruction->size > INSTRUCTION_MAX ||
		    instruction->address != start + at || instruction->size > size - at ||
		    instruction->text >= code->string_bytes)
			return false;
		at += instruction->size;
	}
	return true;
}

static int adopt_instructions(int fd, const struct parse_instructions_answer *said, uint64_t start, uint32_t size,
		      struct disassembly *ret_code)
{
	const uint64_t bytes = (uint64_t)said->count * sizeof(*ret_code->instructions);
	uint64_t total;

	if (!memfd_is_sealed(fd, &total) || !said->count || said->count > size ||
	    said->string_bytes > (uint64_t)said->count * DISASSEMBLE_TEXT_MAX ||
	    total != bytes + said->string_bytes)
		return -EBADMSG;
	ret_code->count = said->count;
	ret_code->string_bytes = said->string_bytes;
	ret_code->instructions = malloc(bytes);
	ret_code->strings = memfd_text(fd, bytes, said->string_bytes);
	if (!ret_code->instructions || !ret_code->strings ||
	    memfd_read(fd, ret_code->instructions, bytes, 0) < 0)
		return -ENOMEM;
	return are_instructions(ret_code, start, size) ? 0 : -EBADMSG;
}

int parser_instructions(struct parser *parser, const struct object *object, int fd, uint64_t start,
		uint32_t size, bool is_intel, struct disassembly *ret_disassembly)
{
	const struct parse_instructions question = {
		.file = { .size = object->size, .limit_ms = COMPILE_MS, .may_be_packed = true },
		.start = start, .size = size, .is_intel = is_intel,
	};
	struct parse_instructions_answer said;
	struct helper_call call = {
		.op = PARSE_INSTRUCTIONS, .fd = fd, .timeout_ms = COMPILE_MS + GRACE_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = &said, .answer_bytes = sizeof(said), .wants_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	int r;

	memset(ret_disassembly, 0, sizeof(*ret_disassembly));
	r = parser_ask(parser, object, &call);
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	r = adopt_instructions(memfd, &said, start, min_of(size, (uint32_t)DISASSEMBLE_BYTES_MAX),
		       ret_disassembly);
	if (r < 0)
		disassembly_free(ret_disassembly);
	return r;
}
