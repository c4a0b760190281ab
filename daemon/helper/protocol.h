/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process and its helpers say to each other, over a SOCK_SEQPACKET pair: a request, then its
 * answer, one at a time. Both ends are the same executable, so structs go as they are in memory; the
 * asking end trusts an answer no more than it trusts a file, as that is where its bytes come from.
 *
 * A packet is a header, then `bytes` of a struct of the operation's, and at most one descriptor. What
 * does not fit is in a memfd that is sealed against change, so that it can be neither truncated nor
 * altered while it is read.
 */
#ifndef STACKTAP_HELPER_PROTOCOL_H
#define STACKTAP_HELPER_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include <limits.h>

#include "process/object.h"
#include "symbol/demangle.h"
#include "symbol/disassemble.h"
#include "symbol/lines.h"
#include "symbol/lines_facts.h"
#include "symbol/lines_file.h"

enum {
	HELPER_FD = 3,			/* the helper's end of the socket pair */
	HELPER_BYTES_MAX = 32 << 10,	/* of a packet behind its header */
};

enum helper_kind {
	HELPER_PARSER,
	HELPER_OPENER,
	HELPER_FETCHER,
	HELPER_KINDS,
};

enum helper_op {
	HELPER_HELLO,		/* from the helper, unasked: it is ready */
	PARSE_FACTS,
	PARSE_SYMBOLS,
	PARSE_MINI_SYMBOLS,
	PARSE_TEXT,
	PARSE_KEY,
	PARSE_TABLE,
	OPEN_IN,
	OPEN_PROCESS,
	OPEN_IMAGE,
	OPEN_LINKS,
	OPEN_SCAN,
	PARSE_DEBUG,
	PARSE_SUM,
	PARSE_DWARF,
	PARSE_LINES,
	OPEN_PERF_MAP,
	PARSE_PERF_MAP,
	PARSE_JITDUMP,
	PARSE_INSTRUCTIONS,
	PARSE_NAME,
	FETCH_DEBUG,
	OPEN_CONTEXT,
	PARSE_CONTEXT,
	OPEN_NAMESPACE,
	OPEN_TOUCH,
	OPEN_PROCESSES,
	PARSE_LOAD_INDEX,
	PARSE_SAVE_INDEX,
	PARSE_DWOS,
	PARSE_DWO_NAMES,
	PARSE_LINK,
};

struct helper_header {
	uint32_t op;		/* enum helper_op, the same in an answer */
	int32_t result;		/* of an answer: 0 or -errno */
	uint32_t bytes;
};

/* HELPER_HELLO */
struct helper_hello {
	uint8_t is_confined;	/* system calls are filtered */
};

/* All requests that come with a descriptor of a file. */
struct parse_file {
	uint64_t size;		/* bytes to read at most */
	uint32_t limit_ms;	/* then -ETIME */
	uint8_t may_be_packed;	/* for lines and instructions: see symbol/packed.h */
};

/* Answers PARSE_FACTS. What is no ELF file still has a htlhash. */
struct parse_facts {
	uint8_t is_elf;
	char htlhash[33], build_id[41], go_build_id[ELF_GO_BUILD_ID_MAX];
	uint32_t segment_count;
	struct object_segment segments[OBJECT_SEGMENTS_MAX];
};

/*
 * Answers PARSE_SYMBOLS, and PARSE_MINI_SYMBOLS, which are those of the file that it has inside, see
 * symbol/minidebug.h, and come with all their names. The memfd has `count` struct symbol, `plt_bytes` of names, and of other names
 * `kept_bytes` if they are few.
 */
struct parse_symbols {
	uint64_t base, names_offset, names_bytes, kept_bytes, go_start, go_end;
	uint32_t count, plt_bytes;
	uint8_t is_dynamic, is_stripped;
	uint8_t is_late;	/* the time was over: functions may be missing */
	char partial[64];	/* why functions are missing; empty: none are */
};

/* PARSE_TEXT: bytes of the file, up to a NUL, in the answer without one. */
struct parse_text {
	uint64_t offset;
	uint32_t bytes;
};

/* PARSE_NAME, without a descriptor: the demangled name is in the answer, without a NUL; empty: it has none. */
struct parse_name {
	char mangled[DEMANGLE_INPUT_MAX + 1];
};

/*
 * PARSE_KEY reads what a table is made from into memory, where it stays for a PARSE_TABLE that comes next
 * and without a descriptor: the table is of the very bytes that the key stands for.
 */
struct parse_key {
	uint8_t key[32];
	uint16_t machine;	/* EM_* */
};

/* PARSE_TABLE with a descriptor, or without and the limit alone; the table is in the answer's memfd. */
struct parse_table {
	struct parse_file file;
	uint64_t memory_limit;	/* bytes */
};

/* The file that a mapping is of, see opener_open(). */
struct open_wanted {
	uint64_t inode;
	uint32_t major, minor;
};

/* What a file is. */
struct open_stat {
	uint64_t dev, inode, size, links;
	int64_t ctime_ns;
	uint32_t user, mode;
};

/*
 * OPEN_IN: in the root that comes with it. OPEN_PROCESS: through what the process has open. Both end with the
 * path's NUL. They are answered by struct open_stat and the file; a file that is still the one that is known
 * does not come with it.
 */
struct open_file {
	struct open_wanted wanted;
	struct open_stat known;	/* inode 0: none; but for `links`, and by its path alone */
	uint64_t host_dev;	/* st_dev of the host's root */
	uint32_t tgid;		/* OPEN_PROCESS */
	uint8_t needs_inode;	/* OPEN_IN: the path alone proves nothing */
	uint8_t with_root;	/* OPEN_PROCESS: its root as well */
	uint8_t is_told;	/* OPEN_IN: a program says so, see helper/told.h */
	char path[PATH_MAX];
};

/* OPEN_IMAGE: a process, in the parts that are asked for. */
enum {
	OPEN_IMAGE_ROOT = 1,
	OPEN_IMAGE_DETAILS = 2,
};

struct open_image {
	uint64_t root_dev, root_inode;	/* of the root that is known, which is not sent once more; 0: none is */
	uint32_t tgid;
	uint8_t parts, with_command_line;
};

/* Answers it, with the root, unless that is known; `details` are followed by their texts, see process/texts.h. */
struct open_image_answer {
	uint64_t root_dev, root_inode;
	int32_t root_result, details_result;	/* 0 or -errno; of a part that was not asked for -ENODATA */
	uint32_t pid_in_namespace, user;
};

/* OPEN_SCAN */
struct open_process {
	uint32_t tgid;
};

/*
 * Answers it, and then `count` struct open_mapping and their paths, each with its NUL, in the same order. What does
 * not fit is in a memfd instead.
 */
struct open_scan {
	uint64_t time, start_time;
	uint32_t parent_tgid, count, path_bytes;
	uint8_t is_cut;
	char comm[16];
};

struct open_mapping {
	uint64_t start, end, file_offset, inode;
	uint32_t major, minor;
};

/* PARSE_DEBUG is answered by struct lines_facts, PARSE_LINK, which reads no more than headers and that, by struct lines_link. */

/* PARSE_SUM, and its answer: the CRC of the first @at bytes, as .gnu_debuglink has it of all. It ends with the time, too. */
struct parse_sum {
	struct parse_file file;
	uint64_t at, bytes;	/* where it goes on, and for how many at most */
	uint32_t crc;
};

/*
 * PARSE_DWARF opens what lines are looked up in, and keeps it for the PARSE_DWARF of other parts that
 * may follow and for each PARSE_LINES, which come without a descriptor; any other question ends that.
 */
enum {
	DWARF_PART_FILE,	/* itself */
	DWARF_PART_ALT,		/* what dwz moved out of it */
	DWARF_PART_SPLIT,	/* a package (.dwp) of its split DWARF */
	DWARF_PARTS,
	DWARF_PART_DWO = DWARF_PARTS,	/* a .dwo file that PARSE_DWOS asked for, by its number */
};

struct parse_dwarf {
	struct parse_file file;
	uint32_t number;
	uint8_t part;
	uint8_t symbols_only;
};

/*
 * PARSE_LOAD_INDEX, with a descriptor: what PARSE_SAVE_INDEX answered, in its memfd, for the same file once. For what
 * PARSE_DWARF has opened.
 */
struct parse_index {
	uint64_t size;
};

/* PARSE_LINES and PARSE_DWOS. Sorted. */
struct parse_lines {
	uint64_t addresses[LINES_ADDRESSES_MAX];
	uint32_t count, limit_ms;
};

/*
 * Answers it. The memfd has a uint32_t for each address, how many frames it has, then `frame_count` struct
 * lines_frame, then `string_bytes` of strings.
 */
struct parse_lines_answer {
	uint32_t frame_count, string_bytes, split;
};

/* Answers PARSE_DWOS: how many .dwo files are wanted for how many of the addresses, see lines_find_dwos(). */
struct parse_dwos_answer {
	uint32_t count, addresses;
};

/* PARSE_DWO_NAMES, of one of these; answered by struct dwarf_dwo_names. */
struct parse_dwo {
	uint32_t number, limit_ms;
};

/*
 * OPEN_PERF_MAP, with the root of the process; without one it is that of the process itself. Answered by struct
 * open_stat and the file.
 */
struct open_perf_map {
	uint64_t host_dev;	/* st_dev of the host's root */
	uint64_t start_time;	/* CLOCK_BOOTTIME ns: what is older than the process is another one's */
	uint32_t tgid;
	uint32_t pid;		/* if it has exited: in its namespace, */
	uint32_t user;		/* and whose it was */
};

/* PARSE_PERF_MAP, PARSE_JITDUMP: from @offset on, a number that an answer told, or 0. */
struct parse_code {
	struct parse_file file;
	uint64_t offset;
};

/* Answers both; the memfd has `count` struct code. See struct code_read. */
struct parse_code_answer {
	uint64_t end, bad, dropped;
	uint32_t count;
	uint8_t needs_all;
};

struct parse_instructions {
	struct parse_file file;
	uint64_t start;
	uint32_t size;
	uint8_t is_intel;
};

/* Answers PARSE_INSTRUCTIONS. The memfd has `count` struct instruction, then `string_bytes` of strings. */
struct parse_instructions_answer {
	uint32_t count, string_bytes;
};

enum { FETCH_URL_MAX = 1024 };

/* FETCH_DEBUG, with a descriptor that the debug file is written to. */
struct fetch_request {
	char url[FETCH_URL_MAX];	/* without a slash at its end */
	char build_id[41];
	uint64_t max_bytes;
	uint32_t limit_seconds;
};

enum fetch_outcome {
	FETCH_FOUND,
	FETCH_ABSENT,		/* the server says that it has none */
	FETCH_TOO_LARGE,
	FETCH_UNREACHABLE,	/* there is no such server */
	FETCH_TIMED_OUT,
	FETCH_FAILED,		/* anything else: `detail` */
	FETCH_OUTCOMES,
};

/* Answers it. What was written is whole only if it was found. */
struct fetch_reply {
	uint64_t bytes;
	uint32_t outcome;	/* enum fetch_outcome */
	char detail[256];	/* in words, unless it was found */
};
/* OPEN_CONTEXT: of the process that runs this executable; with what was answered before, if anything was. */
struct open_context {
	uint64_t start_time;	/* CLOCK_BOOTTIME ns, 0: unknown */
	uint64_t address, published;
	uint32_t tgid;
	char executable_path[1025];
};

/* Answers it; the memfd has the payload. None comes with the one that is known. */
struct open_context_answer {
	uint64_t address, published;
};

/* Answers OPEN_NAMESPACE, of the process' mount namespace. */
struct open_namespace {
	uint64_t dev, inode;
};

enum { OPEN_PAGES_MAX = 64 };

/* OPEN_TOUCH: read a byte of each page, up to the first that cannot be read; answered by how many could. */
struct open_touch {
	uint64_t address;
	uint32_t tgid, pages, page_bytes;
};

/* Answers it, and OPEN_PROCESSES, whose memfd has a uint32_t for each process. */
struct open_count {
	uint32_t count;
};

/* PARSE_CONTEXT, of such a payload, is answered by struct context_facts. */

#endif /* STACKTAP_HELPER_PROTOCOL_H */
