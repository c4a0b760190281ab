// SPDX-License-Identifier: Apache-2.0
#include "helper/parse.h"

#include <assert.h>
#include <malloc.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "helper/memfd.h"
#include "helper/parse_lines.h"
#include "process/context.h"
#include "symbol/context.h"
#include "symbol/demangle.h"
#include "symbol/disassemble.h"
#include "symbol/facts.h"
#include "symbol/htlhash.h"
#include "symbol/jitdump.h"
#include "symbol/kernel_module.h"
#include "symbol/minidebug.h"
#include "symbol/perf_map.h"
#include "symbol/symtab.h"
#include "unwind/compile.h"
#include "unwind/functions.h"
#include "unwind/key.h"

/* The daemon is linked without a disassembler. */
extern __typeof__(disassemble) disassemble __attribute__((weak));

enum {
	RANGES_PART = 3,	/* of the time for symbols may go into them */
	CRC_STEP = 256 << 10,
};

/* Read, and kept for PARSE_TABLE; the descriptor is its own. */
static struct elf kept = { .fd = -1 };
static int kept_fd = -1;

static void drop_kept(void)
{
	if (kept_fd < 0)
		return;
	elf_close(&kept);
	close(kept_fd);
	kept_fd = -1;
	/* what a large file took is not ours to keep */
	malloc_trim(0);
}

static int answer_facts(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_file *file = request->payload;
	struct parse_facts *facts = (void *)answer->payload;
	struct object object = { .kind = OBJECT_FILE };
	struct elf elf;
	int r;

	memset(facts, 0, sizeof(*facts));
	answer->bytes = sizeof(*facts);
	r = htlhash_file(request->fd, file->size, facts->htlhash);
	if (r < 0 && r != -ENODATA)
		return r;
	r = elf_open(&elf, request->fd, file->size, parse_deadline(file));
	if (r < 0)
		return r == -ETIME ? r : 0;
	r = facts_read(&elf, &object);
	elf_go_build_id(&elf, facts->go_build_id);
	elf_close(&elf);
	memcpy(facts->build_id, object.build_id, sizeof(facts->build_id));
	if (!r) {
		facts->is_elf = true;
		facts->segment_count = (uint32_t)object.segment_count;
		memcpy(facts->segments, object.segments,
		       object.segment_count * sizeof(*object.segments));
		pool_uncharge(POOL_PROCESSES, object.segment_count * sizeof(*object.segments));
		free(object.segments);
	}
	return 0;
}

static int answer_sum(struct serve_request *request, struct serve_answer *answer)
{
	struct parse_sum sum = *(const struct parse_sum *)request->payload;
	const uint64_t deadline = parse_deadline(&sum.file);
	static uint8_t bytes[CRC_STEP];
	ssize_t got;

	/* one step in any case: it comes to an end */
	do {
		const uint64_t left = sum.at < sum.file.size ? min_of(sum.file.size - sum.at, sum.bytes) : 0;

		if (!left)
			break;
		got = pread(request->fd, bytes, (size_t)min_of(left, (uint64_t)CRC_STEP), (off_t)sum.at);
		if (got <= 0)
			return got ? -errno : -EIO;
		sum.crc = (uint32_t)crc32(sum.crc, bytes, (uInt)got);
		sum.at += (uint64_t)got;
		sum.bytes -= (uint64_t)got;
	} while (clock_monotonic() < deadline);
	answer->bytes = sizeof(sum);
	memcpy(answer->payload, &sum, sizeof(sum));
	return 0;
}

static int write_symbols(const struct symtab *symtab, struct parse_symbols *symbols)
{
	_cleanup_close_ int fd = memfd_new();
	int r = fd < 0 ? fd : 0;

	*symbols = (struct parse_symbols){
		.base = symtab->base,
		.names_offset = symtab->names_offset,
		.names_bytes = symtab->names_bytes,
		.kept_bytes = symtab->names ? symtab->names_bytes : 0,
		.count = symtab->count,
		.plt_bytes = symtab->plt_bytes,
		.is_dynamic = symtab->is_dynamic,
		.is_stripped = symtab->is_stripped,
		.go_start = symtab->go_start,
		.go_end = symtab->go_end,
		.is_late = symtab->is_late,
	};
	if (symtab->partial)
		snprintf(symbols->partial, sizeof(symbols->partial), "%s", symtab->partial);
	if (!r)
		r = file_write(fd, symtab->symbols, symtab->count * sizeof(*symtab->symbols));
	if (!r)
		r = file_write(fd, symtab->plt_names, symtab->plt_bytes);
	if (!r)
		r = file_write(fd, symtab->names, symbols->kept_bytes);
	return r < 0 ? r : memfd_seal(&fd);
}

/* Names are worth having without ranges, so these take a part of the time alone. */
static int read_ranges(const struct elf *elf, struct function_range **ret_ranges, size_t *ret_count, bool *ret_is_late)
{
	const uint64_t now = clock_monotonic();
	struct elf part = *elf;
	int r;

	*ret_ranges = NULL;
	*ret_count = 0;
	if (part.deadline > now)
		part.deadline = now + (part.deadline - now) / RANGES_PART;
	r = functions_read(&part, ret_ranges, ret_count);
	*ret_is_late = elf_is_late(&part);
	return r;
}

static int read_symbols(const struct elf *elf, struct symtab **ret_symtab)
{
	_cleanup_free_ struct function_range *ranges = NULL;
	size_t range_count;
	bool is_late;
	int ranges_error = read_ranges(elf, &ranges, &range_count, &is_late);
	int r = symtab_read(elf, ranges, range_count, NULL, ret_symtab);

	if (!r && ranges_error == -ENOMEM && !(*ret_symtab)->partial)
		(*ret_symtab)->partial = "no memory for its unwind information";
	if (!r)
		(*ret_symtab)->is_late |= is_late;
	return r;
}

static int read_mini_symbols(const struct elf *elf, struct symtab **ret_symtab)
{
	_cleanup_free_ struct function_range *ranges = NULL;
	_cleanup_free_ void *data = NULL;
	size_t size, range_count;
	struct elf mini;
	bool is_late;
	int r;

	r = minidebug_read(elf, &data, &size);
	if (r < 0)
		return r;
	r = elf_open_memory(&mini, data, size);
	if (r < 0)
		return r;
	mini.deadline = elf->deadline;
	read_ranges(elf, &ranges, &range_count, &is_late);
	r = symtab_read_mini(&mini, ranges, range_count, ret_symtab);
	if (!r)
		(*ret_symtab)->is_late |= is_late;
	elf_close(&mini);
	return r;
}

static int answer_symbols(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_file *file = request->payload;
	struct symtab *symtab = NULL;
	struct elf elf;
	int r;

	/* each PLT entry has a symbol and a name somewhere */
	r = elf_open_cached(&elf, request->fd, file->size, parse_deadline(file));
	if (r < 0)
		return r;
	if (kernel_module_is(&elf))
		kernel_module_place(&elf);
	r = request->op == PARSE_SYMBOLS ? read_symbols(&elf, &symtab) :
					   read_mini_symbols(&elf, &symtab);
	elf_close(&elf);
	if (r >= 0) {
		answer->bytes = sizeof(struct parse_symbols);
		r = write_symbols(symtab, (void *)answer->payload);
		symtab_free(symtab);
	}
	malloc_trim(0);
	if (r < 0)
		return r;
	answer->fd = r;
	return 0;
}

static int answer_text(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_text *text = request->payload;
	ssize_t n;

	if (text->bytes > HELPER_BYTES_MAX)
		return -E2BIG;
	n = pread(request->fd, answer->payload, text->bytes, (off_t)text->offset);
	if (n < 0)
		return -errno;
	answer->bytes = strnlen((const char *)answer->payload, (size_t)n);
	return 0;
}

static int answer_name(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_name *question = request->payload;
	char *name = (char *)answer->payload;

	static_assert((int)DEMANGLE_MAX <= (int)HELPER_BYTES_MAX, "a name fits into a packet");
	if (!memchr(question->mangled, '\0', sizeof(question->mangled)))
		return -EINVAL;
	answer->bytes = demangle(question->mangled, name) ? strlen(name) : 0;
	return 0;
}

static int open_kept(struct serve_request *request, const struct parse_file *file)
{
	int r;

	drop_kept();
	kept_fd = steal_fd(&request->fd);
	r = elf_open_snapshot(&kept, kept_fd, file->size, parse_deadline(file));
	if (r < 0)
		drop_kept();
	return r;
}

static int answer_key(struct serve_request *request, struct serve_answer *answer)
{
	struct parse_key *key = (void *)answer->payload;
	int r = open_kept(request, request->payload);

	if (r < 0)
		return r;
	memset(key, 0, sizeof(*key));
	key->machine = kept.machine;
	r = key_make(&kept, key->key);
	if (r < 0)
		drop_kept();
	answer->bytes = sizeof(*key);
	return r;
}

static int answer_table(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_table *table = request->payload;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ void *data = NULL;
	size_t size;
	int r;

	r = request->fd >= 0 ? open_kept(request, &table->file) : 0;
	if (r < 0)
		return r;
	if (kept_fd < 0)
		return -ESTALE;
	kept.deadline = parse_deadline(&table->file);
	r = compile_elf(&kept, (size_t)table->memory_limit, &data, &size, (void *)answer->payload);
	answer->bytes = sizeof(struct compile_stats);
	drop_kept();
	if (r < 0)
		return r;
	fd = memfd_new();
	r = fd < 0 ? fd : file_write(fd, data, size);
	if (!r)
		r = memfd_seal(&fd);
	if (r < 0)
		return r;
	answer->fd = r;
	return 0;
}

static int answer_code(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_code *code = request->payload;
	struct parse_code_answer *to = (void *)answer->payload;
	_cleanup_close_ int fd = memfd_new();
	struct code_read read;
	int r;

	if (fd < 0)
		return fd;
	r = (request->op == PARSE_PERF_MAP ? perf_map_read : jitdump_read)(
		request->fd, code->offset, code->file.size, parse_deadline(&code->file), &read);
	if (r < 0)
		return r;
	*to = (struct parse_code_answer){
		.end = read.end, .bad = read.bad, .dropped = read.table.dropped,
		.count = read.table.count, .needs_all = read.needs_all,
	};
	answer->bytes = sizeof(*to);
	r = file_write(fd, read.table.codes, read.table.count * sizeof(*read.table.codes));
	code_table_free(&read.table);
	malloc_trim(0);
	if (!r)
		r = memfd_seal(&fd);
	if (r < 0)
		return r;
	answer->fd = r;
	return 0;
}

static int write_instructions(const struct disassembly *code, struct parse_instructions_answer *ret_answer)
{
	_cleanup_close_ int fd = memfd_new();
	int r = fd < 0 ? fd : 0;

	*ret_answer = (struct parse_instructions_answer){
		.count = code->count, .string_bytes = code->string_bytes,
	};
	if (!r)
		r = file_write(fd, code->instructions, code->count * sizeof(*code->instructions));
	if (!r)
		r = file_write(fd, code->strings, code->string_bytes);
	return r < 0 ? r : memfd_seal(&fd);
}

static int answer_instructions(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_instructions *question = request->payload;
	struct disassembly code;
	struct elf elf;
	uint64_t size;
	int r;

	if (!disassemble)
		return -EOPNOTSUPP;
	r = parse_unpack(request, &question->file, &size);
	if (!r)
		r = elf_open(&elf, request->fd, size, parse_deadline(&question->file));
	if (r < 0)
		return r;
	r = disassemble(&elf, question->start, question->size, question->is_intel, &code);
	elf_close(&elf);
	if (r < 0)
		return r;
	answer->bytes = sizeof(struct parse_instructions_answer);
	r = write_instructions(&code, (void *)answer->payload);
	disassembly_free(&code);
	malloc_trim(0);
	if (r < 0)
		return r;
	answer->fd = r;
	return 0;
}

static int answer_context(struct serve_request *request, struct serve_answer *answer)
{
	const struct parse_file *file = request->payload;
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (file->size > CONTEXT_MAX_BYTES)
		return -E2BIG;
	data = malloc(file->size + 1);
	r = data ? memfd_read(request->fd, data, file->size, 0) : -ENOMEM;
	answer->bytes = sizeof(struct context_facts);
	return r < 0 ? r : context_parse(data, file->size, (void *)answer->payload);
}

static const struct {
	int (*answer)(struct serve_request *request, struct serve_answer *answer);
	size_t bytes;		/* of the request */
	bool needs_fd;
} operations[] = {
	[PARSE_FACTS] = { answer_facts, sizeof(struct parse_file), true },
	[PARSE_SYMBOLS] = { answer_symbols, sizeof(struct parse_file), true },
	[PARSE_MINI_SYMBOLS] = { answer_symbols, sizeof(struct parse_file), true },
	[PARSE_TEXT] = { answer_text, sizeof(struct parse_text), true },
	[PARSE_KEY] = { answer_key, sizeof(struct parse_file), true },
	[PARSE_TABLE] = { answer_table, sizeof(struct parse_table), false },
	[PARSE_DEBUG] = { parse_lines_facts, sizeof(struct parse_file), true },
	[PARSE_LINK] = { parse_lines_link, sizeof(struct parse_file), true },
	[PARSE_SUM] = { answer_sum, sizeof(struct parse_sum), true },
	[PARSE_DWARF] = { parse_lines_dwarf, sizeof(struct parse_dwarf), true },
	[PARSE_PERF_MAP] = { answer_code, sizeof(struct parse_code), true },
	[PARSE_JITDUMP] = { answer_code, sizeof(struct parse_code), true },
	[PARSE_LINES] = { parse_lines_find, sizeof(struct parse_lines), false },
	[PARSE_INSTRUCTIONS] = { answer_instructions, sizeof(struct parse_instructions), true },
	[PARSE_NAME] = { answer_name, sizeof(struct parse_name), false },
	[PARSE_LOAD_INDEX] = { parse_lines_load_index, sizeof(struct parse_index), true },
	[PARSE_SAVE_INDEX] = { parse_lines_save_index, 0, false },
	[PARSE_DWOS] = { parse_lines_dwos, sizeof(struct parse_lines), false },
	[PARSE_DWO_NAMES] = { parse_lines_dwo_names, sizeof(struct parse_dwo), false },
	[PARSE_CONTEXT] = { answer_context, sizeof(struct parse_file), true },
};

/* Those that go on with what PARSE_DWARF has opened. */
static bool is_of_lines(uint32_t op)
{
	return op == PARSE_DWARF || op == PARSE_LINES || op == PARSE_DWOS || op == PARSE_DWO_NAMES ||
	       op == PARSE_LOAD_INDEX || op == PARSE_SAVE_INDEX;
}

void parse_answer(struct serve_request *request, struct serve_answer *answer)
{
	/* names of lines are asked for between them */
	if (request->op != PARSE_TABLE && request->op != PARSE_NAME)
		drop_kept();
	if (!is_of_lines(request->op) && request->op != PARSE_NAME)
		parse_lines_close();
	if (request->op >= ARRAY_SIZE(operations) || !operations[request->op].answer ||
	    request->bytes != operations[request->op].bytes ||
	    (operations[request->op].needs_fd && request->fd < 0))
		answer->result = -EINVAL;
	else
		answer->result = operations[request->op].answer(request, answer);
}
