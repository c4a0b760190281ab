// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the parser's answers to each of its questions. No crash, what is taken holds what others rely on, all
 * memory back and no descriptor kept.
 */
#include <sys/mman.h>

#include "answers.h"
#include "base/pool.h"
#include "fds.h"
#include "helper/parser.h"
#include "symbol/code.h"
#include "symbol/context.h"
#include "symbol/lines.h"
#include "symbol/lines_facts.h"
#include "unwind/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t addresses[] = { 0x1000, 0x2000, 0x3000 };

static bool no_room(void *ctx, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	return false;
}

static void ask_for_symbols(struct parser *parser, const struct object *object, bool is_mini)
{
	const struct symtab_reclaim reclaim = { .make_room = no_room };
	static char name[SYMTAB_NAME_MAX];
	struct symtab *symtab;

	if ((is_mini ? parser_mini_symtab : parser_symtab)(parser, object, 0, &reclaim, &symtab) < 0)
		return;
	for (uint32_t i = 0; i < symtab->count; i++) {
		if (i && symtab->symbols[i].start < symtab->symbols[i - 1].start)
			abort();
		symtab_find(symtab, symtab_start(symtab, &symtab->symbols[i]));
		if (symbol_is_named(&symtab->symbols[i]) &&
		    !parser_name(parser, object, 0, symtab, &symtab->symbols[i], name) &&
		    strnlen(name, sizeof(name)) == sizeof(name))
			abort();
	}
	symtab_free(symtab);
}

static void check_lines(struct lines_answer *answer)
{
	uint32_t frames = 0;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		frames += answer->counts[i];
	if (frames != answer->frame_count)
		abort();
	for (uint32_t i = 0; i < answer->frame_count; i++)
		if (strlen(answer->strings + answer->frames[i].name) > answer->string_bytes ||
		    strlen(answer->strings + answer->frames[i].file) > answer->string_bytes)
			abort();
	lines_answer_free(answer);
}

static void ask_for_lines_within(struct parser *parser, const struct object *object, uint32_t limit_ms)
{
	const struct parser_part part = { .fd = 0, .size = 64 };
	struct lines_answer answer;
	uint64_t size;
	int fd;

	if (parser_open_lines(parser, object, 0, true, &part, &part, limit_ms) < 0)
		return;
	parser_load_index(parser, object, 0, 64, limit_ms);
	if (!parser_lines(parser, object, addresses, ARRAY_SIZE(addresses), limit_ms, &answer))
		check_lines(&answer);
	if (!parser_save_index(parser, object, limit_ms, &fd, &size)) {
		if (lseek(fd, 0, SEEK_END) != (off_t)size)
			abort();
		close(fd);
	}
}

static void ask_for_lines(struct parser *parser, const struct object *object)
{
	ask_for_lines_within(parser, object, PARSER_LINES_MS);
}

static void ask_for_lines_now(struct parser *parser, const struct object *object)
{
	struct parser_work work;

	if (parser_begin_lines(parser, &work) < 0)
		return;
	ask_for_lines_within(parser, object, PARSER_READ_MS);
	parser_end_lines(parser, &work);
}

static void ask_for_dwos(struct parser *parser, const struct object *object)
{
	const struct parser_part part = { .fd = 0, .size = 64 };
	static struct dwarf_dwo_names names;
	uint32_t count, asked;

	if (!parser_dwos(parser, object, addresses, ARRAY_SIZE(addresses), 1, &count, &asked) &&
	    (count > DWARF_DWOS_MAX || !asked || asked > ARRAY_SIZE(addresses)))
		abort();
	if (!parser_dwo_names(parser, object, 0, 1, &names) &&
	    (strlen(names.name) >= sizeof(names.name) || strlen(names.directory) >= sizeof(names.directory)))
		abort();
	if (parser_give_dwo(parser, object, 0, 1, &part) > 0)
		abort();
}

static void ask_for_instructions(struct parser *parser, const struct object *object)
{
	enum { START = 0x1000, SIZE = 64 };
	struct disassembly code;
	uint64_t at = START;

	if (parser_instructions(parser, object, 0, START, SIZE, false, &code) < 0)
		return;
	for (uint32_t i = 0; i < code.count; at += code.instructions[i++].size)
		if (code.instructions[i].address != at ||
		    strlen(code.strings + code.instructions[i].text) > code.string_bytes)
			abort();
	if (!code.count || at > START + SIZE)
		abort();
	disassembly_free(&code);
}

static void ask_for_facts(struct parser *parser, struct object *object)
{
	if (!parser_facts(parser, object, 0) && object->segment_count > OBJECT_SEGMENTS_MAX)
		abort();
	if (parser_is_same(parser, object, 0) > 0)
		abort();
}

static void ask_for_a_table(struct parser *parser, const struct object *object)
{
	struct compile_stats stats;
	uint8_t key[KEY_BYTES];
	const void *table;
	uint16_t machine;
	size_t size;

	if (!parser_key(parser, object, 0, key, &machine) && !parser_table(parser, object, -1, &table, &size, &stats))
		parser_unmap(table, size);
}

static void ask_for_debug(struct parser *parser, const struct object *object)
{
	struct parser_sum sum = { 0 };
	struct lines_facts facts;
	struct lines_link link;

	if (!parser_debug(parser, object, 0, PARSER_LINES_MS, &facts) &&
	    (strlen(facts.link.name) >= sizeof(facts.link.name) || strlen(facts.alt_link) >= sizeof(facts.alt_link)))
		abort();
	if (!parser_link(parser, object, 0, &link) && (!link.name[0] || strchr(link.name, '/')))
		abort();
	if (parser_sum(parser, object, 0, &sum) == 0 && sum.at != object->size)
		abort();
}

static void ask_for_code(struct parser *parser, const struct object *object)
{
	const bool is_dump = take_byte() % 2;
	static char name[CODE_NAME_MAX];
	struct code_read read;

	if (parser_code(parser, object, 0, is_dump, 0, object->size, &read) < 0)
		return;
	if (read.end > object->size || !code_table_is_valid(&read.table, read.end))
		abort();
	if (read.table.count && !parser_code_name(parser, object, 0, is_dump, &read.table.codes[0], name) &&
	    strnlen(name, sizeof(name)) == sizeof(name))
		abort();
	code_table_free(&read.table);
}

static void ask_for_context(struct parser *parser, const struct object *object)
{
	static struct context_facts facts;

	if (!parser_context(parser, object, 0, &facts) &&
	    (!memchr(facts.service_name, '\0', sizeof(facts.service_name)) ||
	     !memchr(facts.attributes, '\0', sizeof(facts.attributes))))
		abort();
}

static void ask_for_all_symbols(struct parser *parser, const struct object *object)
{
	ask_for_symbols(parser, object, false);
}

static void ask_for_mini_symbols(struct parser *parser, const struct object *object)
{
	ask_for_symbols(parser, object, true);
}

static void ask_for_a_name(struct parser *parser, const struct object *object)
{
	static char name[DEMANGLE_MAX];

	(void)object;
	if (!parser_demangle(parser, "_Z1fv", name) && strnlen(name, sizeof(name)) == sizeof(name))
		abort();
	parser_demangle_now(parser, "_Z1gv", name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const questions[])(struct parser *parser, const struct object *object) = {
		ask_for_all_symbols, ask_for_mini_symbols, ask_for_a_table, ask_for_debug, ask_for_lines, ask_for_lines_now,
		ask_for_dwos, ask_for_code, ask_for_context, ask_for_a_name, ask_for_instructions,
	};
	const struct fds before = fds_free();
	struct object *object = object_new(OBJECT_FILE, "/bin/x");
	struct parser *parser;
	uint8_t which;

	if (!object || parser_new(&parser) < 0)
		abort();
	object->size = 1 << 20;
	input = data;
	left = size;
	which = take_byte() % (1 + ARRAY_SIZE(questions));
	if (which)
		questions[which - 1](parser, object);
	else
		ask_for_facts(parser, object);
	parser_free(parser);
	object_unref(object);
	if (pool_get(POOL_SYMBOLS)->used || pool_get(POOL_PROCESSES)->used)
		abort();
	fds_check(&before);
	return 0;
}
