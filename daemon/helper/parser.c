// SPDX-License-Identifier: Apache-2.0
#include "helper/parser.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "helper/memfd.h"
#include "helper/parser_ask.h"
#include "symbol/facts.h"

enum {
	TABLE_MAX_BYTES = 32 << 20,
	PLT_MAX_BYTES = 8 << 20,
	CREDIT_PART = 4,	/* of the time may go into names, in the long run */
};

#define CREDIT_NS (30 * NSEC_PER_SEC)

/* Any file may have a name that the demangler dies of: two deaths at once, then one in 50 seconds. */
#define DEATH_NS NSEC_PER_SEC
enum { DEATHS_PART = 50 };

int parser_new(struct parser **ret_parser)
{
	struct parser *parser = calloc(1, sizeof(*parser));
	int r;

	if (!parser)
		return -ENOMEM;
	r = helper_new(HELPER_PARSER, &parser->helper);
	if (r < 0) {
		free(parser);
		return r;
	}
	fair_init(&parser->credit, CREDIT_NS, CREDIT_PART, clock_monotonic());
	fair_init(&parser->waited, CREDIT_NS, CREDIT_PART, clock_monotonic());
	credit_init(&parser->deaths, PARSER_DEATHS_MAX * DEATH_NS, DEATHS_PART, clock_monotonic());
	*ret_parser = parser;
	return 0;
}

void parser_free(struct parser *parser)
{
	if (!parser)
		return;
	helper_free(parser->helper);
	free(parser);
}

void parser_wait(struct parser *parser, bool is_waiting)
{
	parser->is_waiting = is_waiting;
}

bool parser_waits(const struct parser *parser)
{
	return parser->is_waiting;
}

uint64_t parser_starved(const struct parser *parser)
{
	return parser->starved;
}

uint32_t parser_read_ms(const struct parser *parser)
{
	return parser->is_waiting ? PARSER_WAIT_MS : PARSER_READ_MS;
}

/* One that may take long is for who waits to ask again, once all others have been asked. */
static unsigned int tries_of(const struct parser *parser, const struct helper_call *call)
{
	return parser->is_waiting && call->timeout_ms <= PARSER_READ_MS + GRACE_MS ? PARSER_TRIES : 1;
}

bool parser_may_try_again(const struct parser *parser, int error, unsigned int *tries)
{
	return error == -EAGAIN && parser->is_starved && parser_has_time(parser) && --*tries;
}

static struct fair *account_of(struct parser *parser)
{
	return parser->is_waiting ? &parser->waited : &parser->credit;
}

uint64_t parser_starved_ns(const struct parser *parser)
{
	return parser->starved_ns;
}

struct parser_work parser_begin(const struct parser *parser)
{
	return (struct parser_work){ .began = clock_monotonic(), .starved = parser->starved_ns };
}

void parser_spend(struct parser *parser, const struct parser_work *work)
{
	fair_spend(account_of(parser), parser->payer, work->began, clock_monotonic(), parser->starved_ns - work->starved);
}

void parser_pay(struct parser *parser, uint32_t payer)
{
	parser->payer = payer;
}

uint64_t parser_paid(struct parser *parser, uint32_t payer)
{
	return fair_spent(account_of(parser), payer, clock_monotonic());
}

void parser_until(struct parser *parser, const struct deadline *deadline)
{
	parser->deadline = deadline;
}

bool parser_has_time(const struct parser *parser)
{
	return deadline_left_ns(parser->deadline) > 0;
}

int parser_may_ask(struct parser *parser, uint64_t now, uint32_t least_ms)
{
	if (deadline_left_ms(parser->deadline, least_ms) < least_ms)
		return -ETIME;
	if (parser->is_waiting || fair_may(&parser->credit, parser->payer, now))
		return 0;
	parser->deferred++;
	return -EDQUOT;
}

/* What looks at one text, or at little more, takes no time to speak of; all else may take all that it has. */
static uint32_t least_ms_of(const struct helper_call *call)
{
	return call->op == PARSE_TEXT || call->op == PARSE_CONTEXT ? PARSER_SHORT_MS : call->timeout_ms - GRACE_MS;
}

/* What somebody's files make it read for names. */
int parser_ask_for_names(struct parser *parser, const struct object *object, struct helper_call *call)
{
	unsigned int tries = tries_of(parser, call);
	struct parser_work work;
	int r;

	do {
		work = parser_begin(parser);
		r = parser_may_ask(parser, work.began, least_ms_of(call));
		if (r < 0)
			return r;
		r = parser_ask(parser, object, call);
		if (!parser->is_paid)
			parser_spend(parser, &work);
	} while (parser_may_try_again(parser, r, &tries));
	return r;
}

/* Sorted, and no sum of theirs wraps. */
static bool are_segments(const struct parse_facts *facts)
{
	const struct object_segment *segments = facts->segments;

	if (!facts->segment_count || facts->segment_count > OBJECT_SEGMENTS_MAX)
		return false;
	for (uint32_t i = 0; i < facts->segment_count; i++)
		if (!segments[i].size || segments[i].size > UINT64_MAX - segments[i].vaddr ||
		    segments[i].size > UINT64_MAX - segments[i].offset ||
		    (i && segments[i].vaddr < segments[i - 1].vaddr))
			return false;
	return true;
}

static int take_segments(struct object *object, const struct parse_facts *facts)
{
	struct object_segment *segments = calloc(facts->segment_count, sizeof(*segments));

	if (!segments)
		return -ENOMEM;
	memcpy(segments, facts->segments, facts->segment_count * sizeof(*segments));
	return facts_set_segments(object, segments, facts->segment_count);
}

static bool is_printable(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!text[i])
			return true;
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return false;
}

static int ask_facts(struct parser *parser, const struct object *object, int fd,
		     struct parse_facts *ret_facts)
{
	const struct parse_file file = { .size = object->size, .limit_ms = PARSER_READ_MS };
	struct helper_call call = {
		.op = PARSE_FACTS, .fd = fd, .timeout_ms = PARSER_READ_MS + GRACE_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = ret_facts, .answer_bytes = sizeof(*ret_facts),
	};
	int r = parser_ask_for_names(parser, object, &call);

	if (r < 0)
		return r;
	return parser_is_hex(ret_facts->htlhash, sizeof(ret_facts->htlhash)) &&
	       parser_is_id(ret_facts->build_id, sizeof(ret_facts->build_id)) &&
	       is_printable(ret_facts->go_build_id, sizeof(ret_facts->go_build_id)) ? 0 : -EBADMSG;
}

int parser_is_same(struct parser *parser, const struct object *object, int fd)
{
	struct parse_facts facts;
	int r = ask_facts(parser, object, fd, &facts);

	if (r < 0)
		return r;
	return strcmp(facts.htlhash, object->htlhash) ? -ESTALE : 0;
}

int parser_facts(struct parser *parser, struct object *object, int fd)
{
	enum object_state state = OBJECT_NOT_ELF;
	struct parse_facts facts;
	int r = ask_facts(parser, object, fd, &facts);

	if (r < 0)
		return r;
	strcpy(object->htlhash, facts.htlhash);
	strcpy(object->build_id, facts.build_id);
	if (facts.go_build_id[0] && !object->go_build_id)
		object_set_go_build_id(object, facts.go_build_id);
	if (facts.is_elf && are_segments(&facts) && take_segments(object, &facts) == 0)
		state = OBJECT_READY;
	atomic_store_explicit(&object->state, state, memory_order_release);
	return 0;
}

int parser_sum(struct parser *parser, const struct object *object, int fd, struct parser_sum *sum)
{
	const struct parse_sum question = {
		.file = { .size = object->size, .limit_ms = PARSER_SUM_MS },
		.at = sum->at, .bytes = PARSER_SUM_BYTES, .crc = sum->crc,
	};
	struct parse_sum answer;
	struct helper_call call = {
		.op = PARSE_SUM, .fd = fd, .timeout_ms = PARSER_SUM_MS + GRACE_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = &answer, .answer_bytes = sizeof(answer),
	};
	const struct parser_work work = parser_begin(parser);
	int r;

	if (sum->at >= object->size)
		return 0;
	r = parser_may_ask(parser, work.began, PARSER_SUM_MS);
	if (r < 0)
		return r;
	r = parser_ask(parser, object, &call);
	parser_spend(parser, &work);
	if (r < 0)
		return r;
	/* what does not go on would be asked for ever */
	if (answer.at <= sum->at || answer.at > object->size)
		return -EBADMSG;
	*sum = (struct parser_sum){ .at = answer.at, .crc = answer.crc };
	return sum->at < object->size ? -EAGAIN : 0;
}

/* Names begin inside what there is of names; the order is what a search relies on. */
static bool are_symbols(const struct symtab *symtab)
{
	for (uint32_t i = 0; i < symtab->count; i++) {
		const struct symbol *symbol = &symtab->symbols[i];

		if (i && symbol->start < symbol[-1].start)
			return false;
		if (!symbol_is_named(symbol))
			continue;
		if (symbol->name & SYMBOL_PLT ? (symbol->name & ~SYMBOL_PLT) >= symtab->plt_bytes :
						symbol->name >= symtab->names_bytes)
			return false;
	}
	return true;
}

static int take_symbols(int fd, const struct parse_symbols *symbols, struct symtab *symtab)
{
	const size_t bytes = symbols->count * sizeof(*symtab->symbols);

	symtab->base = symbols->base;
	symtab->names_offset = symbols->names_offset;
	symtab->names_bytes = symbols->names_bytes;
	symtab->is_dynamic = symbols->is_dynamic;
	symtab->is_stripped = symbols->is_stripped;
	symtab->go_start = symbols->go_start;
	symtab->go_end = symbols->go_end;
	symtab->is_late = symbols->is_late;
	symtab->symbols = malloc(bytes + 1);
	if (!symtab->symbols || memfd_read(fd, symtab->symbols, bytes, 0) < 0)
		return -ENOMEM;
	symtab->count = symbols->count;
	symtab->plt_bytes = symbols->plt_bytes;
	symtab->plt_names = memfd_text(fd, bytes, symbols->plt_bytes);
	if (symbols->kept_bytes)
		symtab->names = memfd_text(fd, bytes + symbols->plt_bytes, symbols->kept_bytes);
	if (!symtab->plt_names || (symbols->kept_bytes && !symtab->names))
		return -ENOMEM;
	return are_symbols(symtab) ? 0 : -EBADMSG;
}

static int adopt_symbols(const struct symtab_reclaim *reclaim, int fd, bool is_mini,
			 const struct parse_symbols *symbols, struct symtab **ret_symtab)
{
	uint64_t size, bytes = (uint64_t)symbols->count * sizeof(struct symbol) + symbols->plt_bytes;
	struct symtab *symtab;
	int r;

	if (!memfd_is_sealed(fd, &size) || symbols->count > SYMTAB_SYMBOLS_MAX ||
	    symbols->plt_bytes > PLT_MAX_BYTES ||
	    symbols->kept_bytes > (is_mini ? SYMTAB_NAMES_MINI : SYMTAB_NAMES_KEPT) ||
	    (is_mini && symbols->kept_bytes != symbols->names_bytes) ||
	    (symbols->kept_bytes && symbols->kept_bytes != symbols->names_bytes) ||
	    size != bytes + symbols->kept_bytes)
		return -EBADMSG;
	bytes += symbols->kept_bytes + sizeof(*symtab);
	while (!pool_charge(POOL_SYMBOLS, bytes))
		if (!reclaim->make_room(reclaim->ctx, bytes))
			return -ENOBUFS;
	symtab = calloc(1, sizeof(*symtab));
	if (!symtab) {
		pool_uncharge(POOL_SYMBOLS, bytes);
		return -ENOMEM;
	}
	symtab->bytes = bytes;
	r = take_symbols(fd, symbols, symtab);
	if (r < 0) {
		symtab_free(symtab);
		return r;
	}
	*ret_symtab = symtab;
	return 0;
}

static int ask_symtab(struct parser *parser, enum helper_op op, const struct object *object, int fd,
		      const struct symtab_reclaim *reclaim, struct symtab **ret_symtab)
{
	const struct parse_file file = { .size = object->size, .limit_ms = parser_read_ms(parser) };
	struct parse_symbols symbols;
	struct helper_call call = {
		.op = op, .fd = fd, .timeout_ms = parser_read_ms(parser) + GRACE_MS,
		.hurried_ms = PARSER_READ_MS + GRACE_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = &symbols, .answer_bytes = sizeof(symbols), .wants_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	int r = parser_ask_for_names(parser, object, &call);

	/* the parser was ended, which says nothing of the file */
	if (r == -ECANCELED)
		return -EAGAIN;
	/* unpacking it would take as long the next time, and keep others waiting each time */
	if (r == -ETIME && op == PARSE_MINI_SYMBOLS && call.ret_ns)
		return -EFBIG;
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	symbols.is_late &= parser->is_starved;
	symbols.partial[sizeof(symbols.partial) - 1] = '\0';
	if (symbols.partial[0])
		log_debug("%s: some functions will have no names: %s", object->path,
			  symbols.partial);
	return adopt_symbols(reclaim, memfd, op == PARSE_MINI_SYMBOLS, &symbols, ret_symtab);
}

int parser_symtab(struct parser *parser, const struct object *object, int fd,
		  const struct symtab_reclaim *reclaim, struct symtab **ret_symtab)
{
	return ask_symtab(parser, PARSE_SYMBOLS, object, fd, reclaim, ret_symtab);
}

int parser_mini_symtab(struct parser *parser, const struct object *object, int fd,
		       const struct symtab_reclaim *reclaim, struct symtab **ret_symtab)
{
	return ask_symtab(parser, PARSE_MINI_SYMBOLS, object, fd, reclaim, ret_symtab);
}

int parser_name(struct parser *parser, const struct object *object, int fd,
		const struct symtab *symtab, const struct symbol *symbol,
		char ret_name[static SYMTAB_NAME_MAX])
{
	struct parse_text text = { .offset = symtab->names_offset + symbol->name };
	struct helper_call call = {
		.op = PARSE_TEXT, .fd = fd, .timeout_ms = PARSER_READ_MS + GRACE_MS,
		.request = &text, .request_bytes = sizeof(text),
		.answer = ret_name, .is_text = true,
	};
	int r;

	if (!symtab_needs_file(symtab, symbol))
		return symtab_name(symtab, symbol, ret_name);
	call.answer_bytes = (size_t)min_of(symtab->names_bytes - symbol->name,
					   (uint64_t)SYMTAB_NAME_MAX - 1);
	text.bytes = (uint32_t)call.answer_bytes;
	r = parser_ask_for_names(parser, object, &call);
	if (r < 0)
		return r;
	ret_name[call.ret_bytes] = '\0';
	return symtab_trim(ret_name);
}

int parser_demangle(struct parser *parser, const char *mangled, char ret_name[static DEMANGLE_MAX])
{
	struct parse_name question = { 0 };
	struct helper_call call = {
		.op = PARSE_NAME, .fd = -1, .timeout_ms = PARSER_READ_MS + GRACE_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = ret_name, .answer_bytes = DEMANGLE_MAX - 1, .is_text = true,
	};
	unsigned int tries = tries_of(parser, &call);
	int r;

	if (!demangle_may(mangled) || credit_left(&parser->deaths, clock_monotonic()) < DEATH_NS)
		return -ENODATA;
	strcpy(question.mangled, mangled);
	do
		r = parser_call(parser, &call);
	while (parser_may_try_again(parser, r, &tries));
	if (r == -ETIMEDOUT || r == -EPIPE) {
		credit_charge(&parser->deaths, DEATH_NS);
		return -ENODATA;
	}
	if (r < 0)
		return r;
	ret_name[call.ret_bytes] = '\0';
	return ret_name[0] ? 0 : -ENODATA;
}

int parser_demangle_now(struct parser *parser, const char *mangled,
			char ret_name[static DEMANGLE_MAX])
{
	const struct parser_work work = parser_begin(parser);
	int r;

	if (!demangle_may(mangled))
		return -ENODATA;
	r = parser_may_ask(parser, work.began, PARSER_SHORT_MS);
	if (r < 0)
		return r;
	r = parser_demangle(parser, mangled, ret_name);
	parser_spend(parser, &work);
	return r;
}

/* What it says of what it read is so far nothing but bytes. */
static int adopt_code(int fd, const struct parse_code *asked, const struct parse_code_answer *said,
		      struct code_read *ret_read)
{
	const size_t bytes = (size_t)said->count * sizeof(struct code);
	struct code_table table = { .count = said->count, .dropped = said->dropped };
	uint64_t size;

	if (!memfd_is_sealed(fd, &size) || said->count > CODE_MAX || size != bytes ||
	    said->end < asked->offset || said->end > asked->file.size)
		return -EBADMSG;
	table.codes = malloc(bytes + 1);
	if (!table.codes || memfd_read(fd, table.codes, bytes, 0) < 0) {
		code_table_free(&table);
		return -ENOMEM;
	}
	if (!code_table_is_valid(&table, said->end)) {
		code_table_free(&table);
		return -EBADMSG;
	}
	*ret_read = (struct code_read){
		.table = table, .end = said->end, .bad = said->bad, .needs_all = said->needs_all,
	};
	return 0;
}

int parser_code(struct parser *parser, const struct object *object, int fd, bool is_dump,
		uint64_t offset, uint64_t size, struct code_read *ret_read)
{
	const struct parse_code code = {
		.file = { .size = size, .limit_ms = PARSER_READ_MS }, .offset = offset,
	};
	struct parse_code_answer said;
	struct helper_call call = {
		.op = is_dump ? PARSE_JITDUMP : PARSE_PERF_MAP, .fd = fd,
		.timeout_ms = PARSER_READ_MS + GRACE_MS, .request = &code, .request_bytes = sizeof(code),
		.answer = &said, .answer_bytes = sizeof(said), .wants_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	int r = parser_ask_for_names(parser, object, &call);

	if (r < 0)
		return r;
	memfd = call.ret_fd;
	return adopt_code(memfd, &code, &said, ret_read);
}

int parser_code_name(struct parser *parser, const struct object *object, int fd, bool is_dump,
		     const struct code *code, char ret_name[static CODE_NAME_MAX])
{
	const struct parse_text text = { .offset = code->name, .bytes = CODE_NAME_MAX - 1 };
	struct helper_call call = {
		.op = PARSE_TEXT, .fd = fd, .timeout_ms = PARSER_READ_MS + GRACE_MS,
		.request = &text, .request_bytes = sizeof(text),
		.answer = ret_name, .answer_bytes = CODE_NAME_MAX - 1, .is_text = true,
	};
	int r = parser_ask_for_names(parser, object, &call);

	if (r < 0)
		return r;
	ret_name[call.ret_bytes] = '\0';
	if (!is_dump)
		ret_name[strcspn(ret_name, "\r\n")] = '\0';
	return ret_name[0] ? 0 : -ENODATA;
}

int parser_key(struct parser *parser, const struct object *object, int fd,
	       uint8_t ret_key[static KEY_BYTES], uint16_t *ret_machine)
{
	const struct parse_file file = { .size = object->size, .limit_ms = COMPILE_MS };
	struct parse_key key;
	struct helper_call call = {
		.op = PARSE_KEY, .fd = fd, .timeout_ms = COMPILE_MS + GRACE_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = &key, .answer_bytes = sizeof(key),
	};
	int r = parser_ask(parser, object, &call);

	static_assert(sizeof(key.key) == KEY_BYTES, "the protocol carries a whole key");
	if (r < 0)
		return r;
	memcpy(ret_key, key.key, KEY_BYTES);
	*ret_machine = key.machine;
	return 0;
}

int parser_table(struct parser *parser, const struct object *object, int fd, const void **ret_data,
		 size_t *ret_size, struct compile_stats *ret_stats)
{
	const struct parse_table table = {
		.file = { .size = object->size, .limit_ms = COMPILE_MS },
		.memory_limit = PARSER_TABLE_BYTES,
	};
	struct helper_call call = {
		.op = PARSE_TABLE, .fd = fd, .timeout_ms = COMPILE_MS + GRACE_MS,
		.request = &table, .request_bytes = sizeof(table),
		.answer = ret_stats, .answer_bytes = sizeof(*ret_stats), .wants_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	uint64_t size;
	void *data;
	int r = parser_ask(parser, object, &call);

	if (r < 0)
		return r;
	memfd = call.ret_fd;
	if (!memfd_is_sealed(memfd, &size) || !size)
		return -EBADMSG;
	if (size > TABLE_MAX_BYTES)
		return -EFBIG;
	/* sealed: it cannot be truncated under us */
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, memfd, 0);
	if (data == MAP_FAILED)
		return -ENOMEM;
	*ret_data = data;
	*ret_size = size;
	return 0;
}

void parser_unmap(const void *data, size_t size)
{
	if (data)
		munmap((void *)(uintptr_t)data, size);
}

void parser_stats(struct parser *parser, struct parser_stats *ret_stats)
{
	*ret_stats = (struct parser_stats){ 0 };
	helper_stats(parser->helper, &ret_stats->helper);
	ret_stats->deferred = parser->deferred;
	ret_stats->set_apart = suspects_set_apart(&parser->suspects);
	memcpy(ret_stats->last_set_apart, parser->suspects.last_set_apart, sizeof(ret_stats->last_set_apart));
}
