/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the parser, the helper that alone reads what is in files. What it says is checked here before
 * anybody relies on it. For one thread.
 *
 * A file that the parser dies of, or hangs in, PARSER_DEATHS_MAX times is set apart: it is not asked about
 * again, -ENOTRECOVERABLE. Facts and names take at most a quarter of the time in the long run, and 30
 * seconds in one go; beyond that they are put off, -EDQUOT. So they are for who took as much as is left for all
 * others (base/fair.h). Time in which the parser waited for a CPU counts half at most. While somebody waits for them he is refused none of the time: parser_wait().
 */
#ifndef STACKTAP_HELPER_PARSER_H
#define STACKTAP_HELPER_PARSER_H

#include "base/deadline.h"
#include "helper/helper.h"
#include "helper/suspects.h"
#include "symbol/code.h"
#include "symbol/demangle.h"
#include "symbol/disassemble.h"
#include "symbol/lines.h"
#include "symbol/lines_facts.h"
#include "symbol/lines_file.h"
#include "symbol/symtab.h"
#include "unwind/compile.h"
#include "unwind/key.h"

enum {
	PARSER_TABLE_BYTES = 128 << 20,	/* that compiling one table may take there */
	PARSER_READ_MS = 1000,		/* for a question about a file, for names; less is not begun with */
	PARSER_WAIT_MS = 10000,	/* the same of who waits, for a table of functions */
	PARSER_SHORT_MS = 50,		/* one that reads a text is not begun with less */
	PARSER_SUM_MS = 500,		/* the same of one for a part of a file's CRC, which ends with its time, or */
	PARSER_SUM_BYTES = 128 << 20,
	PARSER_LINES_MS = 30000,	/* for a question about lines, of who waits for it */
	PARSER_TRIES = 4,		/* of who waits, while the parser has no CPU */
};

struct parser;

struct parser_stats {
	struct helper_stats helper;
	uint64_t set_apart;		/* files, right now */
	uint64_t deferred;		/* questions put off: names took too much of the time */
	char last_set_apart[256];	/* its path, and what it did */
};

int parser_new(struct parser **ret_parser);
void parser_free(struct parser *parser);	/* NULL is fine */

/*
 * From now on who asks waits for names, or does not: tables of functions have PARSER_WAIT_MS, what has less is asked for
 * again while the parser has no CPU, PARSER_TRIES times, and no share of the time is kept for others, nor taken from it.
 * Where somebody says that the time is over, a table that is being read then has what it has of who does not wait.
 */
void parser_wait(struct parser *parser, bool is_waiting);
bool parser_waits(const struct parser *parser);
/* What a question for a table of functions has. */
uint32_t parser_read_ms(const struct parser *parser);

/* Questions so far that the parser had hardly a CPU for, and ns that it has waited for one in all. */
uint64_t parser_starved(const struct parser *parser);
uint64_t parser_starved_ns(const struct parser *parser);

/* What is paid for once it is over. */
struct parser_work {
	uint64_t began;		/* CLOCK_MONOTONIC ns */
	uint64_t starved;	/* parser_starved_ns() by then */
};

struct parser_work parser_begin(const struct parser *parser);
/*
 * For who waits: the last question came to @error for want of a CPU, and some of *@tries, PARSER_TRIES at first, and of
 * the time are left.
 */
bool parser_may_try_again(const struct parser *parser, int error, unsigned int *tries);

/* Who causes the questions which follow, 0: nobody; and what was taken of late, in ns. See resolve/payer.h. */
void parser_pay(struct parser *parser, uint32_t payer);
uint64_t parser_paid(struct parser *parser, uint32_t payer);

/*
 * From now on questions are over by then, @deadline is borrowed. One that may take longer is not asked, -ETIME, as what
 * is read in less than its time is not all that there is. NULL: there is no end.
 */
void parser_until(struct parser *parser, const struct deadline *deadline);
/* False: it is over, and no question is asked. */
bool parser_has_time(const struct parser *parser);

/*
 * What @object's file, @fd, is: fills in all but its identity, and sets its state; only for one that nobody
 * else sees yet. A file with debug information alone has a build-id and no code: OBJECT_NOT_ELF.
 */
int parser_facts(struct parser *parser, struct object *object, int fd);

/* Does @fd, a file of the same size, begin and end as the object's did? -ESTALE: no. */
int parser_is_same(struct parser *parser, const struct object *object, int fd);

/*
 * What it says that its debug file is called, and that file's CRC: a name without a directory. -ENODATA: nothing. As a
 * part of the time for names, like the CRC of a file.
 */
int parser_link(struct parser *parser, const struct object *object, int fd, struct lines_link *ret_link);
/*
 * The CRC of the whole file, of which *@sum has a part, none at first, and then a larger one. -EAGAIN: there is more; the
 * next question goes on with the same *@sum.
 */
struct parser_sum {
	uint64_t at;
	uint32_t crc;
};

int parser_sum(struct parser *parser, const struct object *object, int fd, struct parser_sum *sum);

/* Its functions, charged to POOL_SYMBOLS: -ENOBUFS. What the parser had no CPU for is missing, symtab->is_late. */
int parser_symtab(struct parser *parser, const struct object *object, int fd,
		  const struct symtab_reclaim *reclaim, struct symtab **ret_symtab);
/* The same of its MiniDebugInfo, with all names kept; -ENODATA: it has none. */
int parser_mini_symtab(struct parser *parser, const struct object *object, int fd,
		       const struct symtab_reclaim *reclaim, struct symtab **ret_symtab);
/* As symtab_name(), but that it can be in the file. */
int parser_name(struct parser *parser, const struct object *object, int fd,
		const struct symtab *symtab, const struct symbol *symbol,
		char ret_name[static SYMTAB_NAME_MAX]);

/*
 * What @mangled, any name, is in its source. -ENODATA: it is none that can be told, or the parser died of it.
 * Deaths cost time that is saved up for them: without any, names stay as they are for a while, -ENODATA as well.
 */
int parser_demangle(struct parser *parser, const char *mangled, char ret_name[static DEMANGLE_MAX]);
/* The same as a part of the time for names, -EDQUOT. For who does not wait for it. */
int parser_demangle_now(struct parser *parser, const char *mangled,
			char ret_name[static DEMANGLE_MAX]);

/*
 * What perf_map_read(), or jitdump_read(), makes of [@offset, @size) of @fd, in a second at most. @object stands for
 * the file, whose size and times change; code_table_free() the table.
 */
int parser_code(struct parser *parser, const struct object *object, int fd, bool is_dump,
		uint64_t offset, uint64_t size, struct code_read *ret_read);
/* -ENODATA: it has none. */
int parser_code_name(struct parser *parser, const struct object *object, int fd, bool is_dump,
		     const struct code *code, char ret_name[static CODE_NAME_MAX]);

/* The name of what a table is made from; it is kept for a parser_table() that is the next question. */
int parser_key(struct parser *parser, const struct object *object, int fd,
	       uint8_t ret_key[static KEY_BYTES], uint16_t *ret_machine);
/*
 * As compile_elf(). @fd -1: of what parser_key() just named. The table is to be unmapped: parser_unmap().
 */
int parser_table(struct parser *parser, const struct object *object, int fd, const void **ret_data,
		 size_t *ret_size, struct compile_stats *ret_stats);
void parser_unmap(const void *data, size_t size);	/* NULL is fine */

/*
 * What names and lines a file may have. For whoever waits for them, PARSER_LINES_MS: no share of the time is kept for
 * others in these, and one that is compressed as a whole is what it unpacks to: -EFBIG, -EBADMSG as packed_unpack().
 */
int parser_debug(struct parser *parser, const struct object *object, int fd, uint32_t limit_ms,
		 struct lines_facts *ret_facts);
/* A further file of DWARF; @fd -1: there is none. */
struct parser_part {
	int fd;
	uint64_t size;
	const struct object *suspect;	/* that is accused of what befalls the parser; NULL: whose DWARF it is */
};

/*
 * Opens @fd for the parser_lines() that come next. @alt: what dwz moved out of it; @split: a package of its split DWARF,
 * which costs inlined functions alone if it cannot be read. NULL: nothing. @limit_ms: for each of them. Its errors: as
 * lines_open().
 */
int parser_open_lines(struct parser *parser, const struct object *object, int fd, bool with_dwarf,
		      const struct parser_part *alt, const struct parser_part *split, uint32_t limit_ms);
/*
 * What saves making the index of the file's units anew, between those two: @fd has @size bytes that parser_save_index()
 * gave for it once. -EBADMSG: they are of another, or damaged. That one, after questions: -ENODATA, there is nothing new;
 * *ret_fd does not change any more, and is the caller's.
 */
int parser_load_index(struct parser *parser, const struct object *object, int fd, uint64_t size, uint32_t limit_ms);
int parser_save_index(struct parser *parser, const struct object *object, uint32_t limit_ms, int *ret_fd, uint64_t *ret_size);
/* As lines_find(), @count addresses at most LINES_ADDRESSES_MAX; lines_answer_free() it. */
int parser_lines(struct parser *parser, const struct object *object, const uint64_t *addresses,
		 uint32_t count, uint32_t limit_ms, struct lines_answer *ret_answer);

/*
 * Between the questions for lines, of split DWARF without a package: as lines_find_dwos(), lines_dwo_names() and
 * lines_set_dwo(), in @limit_ms. @dwo stays the caller's.
 */
int parser_dwos(struct parser *parser, const struct object *object, const uint64_t *addresses, uint32_t count,
		uint32_t limit_ms, uint32_t *ret_count, uint32_t *ret_addresses);
int parser_dwo_names(struct parser *parser, const struct object *object, uint32_t number, uint32_t limit_ms,
		     struct dwarf_dwo_names *ret_names);
int parser_give_dwo(struct parser *parser, const struct object *object, uint32_t number, uint32_t limit_ms,
		    const struct parser_part *dwo);

/*
 * For who does not wait for it: what is asked about lines between these two is a part of the time for names. -EDQUOT, -ETIME:
 * there is none.
 */
int parser_begin_lines(struct parser *parser, struct parser_work *ret_work);
void parser_end_lines(struct parser *parser, const struct parser_work *work);

/*
 * As disassemble(), for whoever waits for it; disassembly_free() it. A program without a disassembler says
 * -EOPNOTSUPP.
 */
int parser_instructions(struct parser *parser, const struct object *object, int fd, uint64_t start,
		uint32_t size, bool is_intel, struct disassembly *ret_disassembly);

/*
 * What a process context says, see process/context.h. @payload stands for it: two that are not the same have
 * another inode or ctime_ns.
 */
struct context_facts;
int parser_context(struct parser *parser, const struct object *payload, int fd,
		   struct context_facts *ret_facts);

void parser_stats(struct parser *parser, struct parser_stats *ret_stats);

#endif /* STACKTAP_HELPER_PARSER_H */
