// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the answers of the parser and the opener, as one would give that a hostile file has taken over. This
 * program has a helper.c of its own, which keeps what its header promises: answers of the size that was asked for,
 * and a descriptor if one was. No crash, what is taken holds what others rely on, all memory back.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pool.h"
#include "helper/helper.h"
#include "helper/memfd.h"
#include "helper/opener.h"
#include "helper/parser.h"
#include "process/image.h"
#include "process/scan.h"
#include "symbol/code.h"
#include "symbol/context.h"
#include "symbol/lines.h"
#include "symbol/lines_facts.h"
#include "unwind/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ASK_IMAGE = 6, ASK_SCAN, ASK_CODE, ASK_CONTEXT, ASK_NAME, ASK_KINDS };

static const uint8_t *input;
static size_t left;

static size_t take(void *bytes, size_t size)
{
	size_t n = min_of(size, left);

	memset(bytes, 0, size);
	memcpy(bytes, input, n);
	input += n;
	left -= n;
	return n;
}

static uint8_t take_byte(void)
{
	uint8_t byte;

	take(&byte, 1);
	return byte;
}

struct helper {
	enum helper_kind kind;
};

int helper_new(enum helper_kind kind, struct helper **ret_helper)
{
	*ret_helper = calloc(1, sizeof(**ret_helper));
	if (!*ret_helper)
		return -ENOMEM;
	(*ret_helper)->kind = kind;
	return 0;
}

void helper_free(struct helper *helper)
{
	free(helper);
}

int helper_call(struct helper *helper, struct helper_call *call)
{
	static const int errors[] = { -ENOENT, -ENOMEM, -EBADMSG, -ETIME };
	uint8_t how = take_byte(), size = take_byte();
	uint8_t large[256 * 24];

	(void)helper;
	call->ret_fd = -1;
	if (how >= 250)
		return errors[how % 4];
	call->ret_bytes = call->answer_bytes;
	if (call->is_text)
		call->ret_bytes = min_of(call->may_lack_fd ? size * (size_t)24 : size, call->answer_bytes);
	take(call->answer, call->ret_bytes);
	if (!call->wants_fd || (call->may_lack_fd && how % 2))
		return 0;
	call->ret_fd = memfd_new();
	take(large, size * (size_t)24);
	if (call->ret_fd < 0 || memfd_write(call->ret_fd, large, size * (size_t)24 + how % 8) < 0)
		abort();
	if (how < 200)
		call->ret_fd = memfd_seal(&call->ret_fd);
	return 0;
}

pid_t helper_left_behind(const struct helper *helper)
{
	(void)helper;
	return 0;
}

bool helper_is_abandoned(struct helper *helper, pid_t pid)
{
	(void)helper;
	(void)pid;
	return false;
}

void helper_stats(struct helper *helper, struct helper_stats *ret_stats)
{
	(void)helper;
	*ret_stats = (struct helper_stats){ 0 };
}

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

static void ask_for_lines(struct parser *parser, const struct object *object)
{
	static const uint64_t addresses[] = { 0x1000, 0x2000, 0x3000 };
	struct lines_answer answer;

	if (parser_lines(parser, object, addresses, ARRAY_SIZE(addresses), &answer) < 0)
		return;
	for (uint32_t i = 0; i < answer.frame_count; i++)
		if (strlen(answer.strings + answer.frames[i].name) > answer.string_bytes)
			abort();
	lines_answer_free(&answer);
}

static void ask_for_dwos(struct parser *parser, const struct object *object)
{
	static const uint64_t addresses[] = { 0x1000, 0x2000, 0x3000 };
	static struct dwarf_dwo_names names;
	uint32_t count, asked;

	if (!parser_dwos(parser, object, addresses, ARRAY_SIZE(addresses), 1, &count, &asked) &&
	    (count > DWARF_DWOS_MAX || !asked || asked > ARRAY_SIZE(addresses)))
		abort();
	if (!parser_dwo_names(parser, object, 0, 1, &names) &&
	    (strlen(names.name) >= sizeof(names.name) || strlen(names.directory) >= sizeof(names.directory)))
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

static void ask_for_a_name(struct parser *parser)
{
	static char name[DEMANGLE_MAX];

	if (!parser_demangle(parser, "_Z1fv", name) && strnlen(name, sizeof(name)) == sizeof(name))
		abort();
}

static void ask_parser(uint8_t kind)
{
	struct object *object = object_new(OBJECT_FILE, "/bin/x");
	struct parser *parser;
	struct compile_stats stats;
	struct lines_facts facts;
	const void *table;
	size_t size;

	if (!object || parser_new(&parser) < 0)
		abort();
	object->size = 1 << 20;
	switch (kind) {
	case 0:
		if (!parser_facts(parser, object, 0) && object->segment_count > OBJECT_SEGMENTS_MAX)
			abort();
		break;
	case 1:
	case 2:
		ask_for_symbols(parser, object, kind == 2);
		break;
	case 3:
		if (!parser_table(parser, object, 0, &table, &size, &stats))
			parser_unmap(table, size);
		break;
	case 4:
		if (!parser_debug(parser, object, 0, &facts) && strlen(facts.link) >= sizeof(facts.link))
			abort();
		break;
	case ASK_CODE:
		ask_for_code(parser, object);
		break;
	case ASK_CONTEXT:
		ask_for_context(parser, object);
		break;
	case ASK_NAME:
		ask_for_a_name(parser);
		break;
	default:
		ask_for_lines(parser, object);
		ask_for_dwos(parser, object);
	}
	parser_free(parser);
	object_unref(object);
}

static void ask_for_image(struct opener *opener)
{
	struct mount_namespace_table *spaces;
	struct mount_namespace *space;
	struct image_details *details;

	if (mount_namespace_table_new("", &spaces) < 0)
		abort();
	opener_image(opener, spaces, (uint32_t)getpid(), true, &space, &details);
	if (space && space->root < 0)
		abort();
	if (details && details->executable_path && strlen(details->executable_path) > 1024)
		abort();
	image_details_free(details);
	mount_namespace_unref(space);
	mount_namespace_table_free(spaces);
}

static void ask_opener(bool wants_image)
{
	struct process_snapshot *snapshot;
	struct opener *opener;

	if (opener_new(&opener) < 0)
		abort();
	if (wants_image) {
		ask_for_image(opener);
	} else if (!opener_scan(opener, 7, &snapshot)) {
		for (size_t i = 0; i < snapshot->mapping_count; i++)
			if (!snapshot->mappings[i].path || snapshot->mappings[i].start >= snapshot->mappings[i].end)
				abort();
		if (strnlen(snapshot->comm, sizeof(snapshot->comm)) == sizeof(snapshot->comm))
			abort();
		process_snapshot_free(snapshot);
	}
	opener_free(opener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t kind;

	input = data;
	left = size;
	kind = take_byte() % ASK_KINDS;
	if (kind == ASK_IMAGE || kind == ASK_SCAN)
		ask_opener(kind == ASK_IMAGE);
	else
		ask_parser(kind);
	if (pool_get(POOL_SYMBOLS)->used || pool_get(POOL_PROCESSES)->used)
		abort();
	return 0;
}
