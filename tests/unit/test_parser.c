// SPDX-License-Identifier: Apache-2.0
/* The parser as a process: what it answers, what it may do, and what its end costs. */
#include "fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "base/clock.h"
#include "helper/memfd.h"
#include "helper/parser.h"
#include "helper/parser_ask.h"
#include "helper/spawn.h"
#include "starve.h"

#include <stacktap/unwind_table.h>

#ifdef __x86_64__
#define SP "7"
#define RA "16"
#else
#define SP "31"
#define RA "30"
#endif

static struct parser *parser;

static bool no_room(void *ctx, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	return false;
}

static const struct symtab_reclaim reclaim = { .make_room = no_room };

/* One for each test: what files and time have been to one is nothing to the next. */
static int setup(void **state)
{
	(void)state;
	setenv("STACKTAP_TEST_SECRET", "token", 1);
	return parser_new(&parser);
}

static int teardown(void **state)
{
	(void)state;
	parser_free(parser);
	return 0;
}

static struct object *open_object(const char *path, int *ret_fd)
{
	struct object *object = object_new(OBJECT_FILE, path);
	struct stat st;

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_non_null(object);
	assert_true(*ret_fd >= 0 && fstat(*ret_fd, &st) == 0);
	object->dev = st.st_dev;
	object->inode = st.st_ino;
	object->size = (uint64_t)st.st_size;
	return object;
}

static struct helper_stats helper(void)
{
	struct parser_stats stats;

	parser_stats(parser, &stats);
	return stats.helper;
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_monotonic() + ms * NSEC_PER_MSEC;
}

/*
 * What comes of a question in the end: on a host that is busy it may be over before the parser has begun with it, and
 * that time was taken from the credit for names.
 */
static int in_the_end(int (*ask)(struct parser *parser, struct object *object, int fd), struct object *object, int fd)
{
	int r, seconds = 60;

	do
		r = ask(parser, object, fd);
	while ((r == -ETIME || r == -EDQUOT || r == -EAGAIN) && seconds-- && !sleep(1));
	return r;
}

static int ask_is_same(struct parser *of, struct object *object, int fd)
{
	return parser_is_same(of, object, fd);
}

/* The parser, once it answers. */
static pid_t pid(void)
{
	static int64_t times;
	struct object *object;
	int fd, r = -ENOENT, tries = 20;

	while (r < 0 && tries--) {
		object = open_object("/proc/self/exe", &fd);
		/* another file each time: when it answers too late that is the host's fault */
		object->ctime_ns = ++times;
		r = in_the_end(parser_facts, object, fd);
		object_unref(object);
		close(fd);
	}
	assert_int_equal(r, 0);
	return helper().pid;
}

static const char *status_of(const char *key)
{
	return fixture_ask("sed -n 's/^%s:[[:space:]]*//p' /proc/%d/status", key, (int)pid());
}

static const char *program(void)
{
	return fixture_build("program", "-O1 -fomit-frame-pointer -Wl,--build-id=0xabcd",
			     "int leaf_of_mine(int x) { return x; }\n"
			     "int main(int c, char **v) { char b[99]; (void)v; b[c] = 1; return "
			     "leaf_of_mine(c) + b[c]; }\n"
			     "__asm__(\".section .note.go.buildid, \\\"a\\\", @note\\n.p2align 2\\n\"\n"
			     "\".long 4, 7, 4\\n.asciz \\\"Go\\\"\\n.byte 0\\n.ascii \\\"a_/b-/9\\\"\\n\"\n"
			     "\".p2align 2\\n.previous\\n\");\n");
}

static void files_are_read_over_there(void **state)
{
	struct compile_stats stats;
	struct symtab *symtab;
	char name[SYMTAB_NAME_MAX] = "";
	uint8_t key[KEY_BYTES], again[KEY_BYTES];
	struct unwind_table table;
	struct object *object;
	const void *data;
	uint16_t machine;
	bool is_found = false;
	size_t size;
	int fd;

	(void)state;
	object = open_object(program(), &fd);
	assert_int_equal(parser_facts(parser, object, fd), 0);
	assert_int_equal(object->state, OBJECT_READY);
	assert_string_equal(object->build_id, "abcd");
	assert_string_equal(object->go_build_id, "a_/b-/9");
	assert_int_equal(strlen(object->htlhash), 32);
	assert_int_equal(object->segment_count, 1);
	assert_int_equal(parser_is_same(parser, object, fd), 0);

	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), 0);
	for (uint32_t i = 0; i < symtab->count && !is_found; i++)
		is_found = parser_name(parser, object, fd, symtab, &symtab->symbols[i], name) == 0 &&
			   !strcmp(name, "leaf_of_mine");
	assert_true(is_found);
	symtab_free(symtab);

	assert_int_equal(parser_key(parser, object, fd, key, &machine), 0);
	/* of what was just named, then of the file itself */
	assert_int_equal(parser_table(parser, object, -1, &data, &size, &stats), 0);
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	assert_int_equal(table.machine, machine);
	parser_unmap(data, size);
	assert_int_equal(parser_table(parser, object, -1, &data, &size, &stats), -ESTALE);
	assert_int_equal(parser_table(parser, object, fd, &data, &size, &stats), 0);
	parser_unmap(data, size);
	assert_int_equal(parser_key(parser, object, fd, again, &machine), 0);
	assert_memory_equal(key, again, sizeof(key));
	object_unref(object);
	close(fd);
}

/* Names of a string table that is not kept are read when they are asked for. */
static void long_string_tables_stay_in_the_file(void **state)
{
	char name[SYMTAB_NAME_MAX];
	struct symtab *symtab;
	struct object *object;
	int fd;

	(void)state;
	fixture_run("{ for i in $(seq 6000); do echo \"int a_rather_long_name_of_a_function_$i(void) "
		    "{ return $i; }\"; done; echo 'int main(void) { return 0; }'; } >many.c && "
		    "cc -O0 -o many many.c");
	object = open_object(fixture_path("many"), &fd);
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), 0);
	assert_null(symtab->names);
	for (uint32_t i = 0; i < symtab->count; i += 500)
		assert_int_equal(parser_name(parser, object, fd, symtab, &symtab->symbols[i], name),
				 0);
	symtab_free(symtab);
	object_unref(object);
	close(fd);
}

/* What is hashed and what is compiled are the same bytes, whatever becomes of the file in between. */
static void a_file_that_changes_is_compiled_as_it_was_named(void **state)
{
	uint8_t key[KEY_BYTES];
	struct compile_stats stats;
	struct object *object;
	const void *data, *before;
	size_t size, before_size;
	uint16_t machine;
	int fd;

	(void)state;
	fixture_run("cp '%s' changing", program());
	object = open_object(fixture_path("changing"), &fd);
	assert_int_equal(parser_table(parser, object, fd, &before, &before_size, &stats), 0);
	assert_int_equal(parser_key(parser, object, fd, key, &machine), 0);
	fixture_run("objcopy --dump-section .eh_frame=frames changing /dev/null && "
		    "tr '\\000-\\377' '\\001-\\377\\000' <frames >turned && "
		    "at=$(readelf -SW changing | awk '{ sub(/^ *\\[ *[0-9]+\\] */, \"\") } "
		    "$1 == \".eh_frame\" { print $4 }') && "
		    "dd if=turned of=changing bs=1 seek=$((0x$at)) conv=notrunc status=none");
	assert_int_equal(parser_table(parser, object, -1, &data, &size, &stats), 0);
	assert_int_equal(size, before_size);
	assert_memory_equal(data, before, size);
	parser_unmap(data, size);
	parser_unmap(before, before_size);
	object_unref(object);
	close(fd);
}

/*
 * Half a million functions, more than those libraries have for whose tables 8 MiB of memory were too few. How long that
 * takes is the host's matter, so it is asked with more time than parser_table() gives.
 */
static void large_files_have_their_tables(void **state)
{
	const uint32_t limit_ms = 10 * 60 * 1000;
	struct parse_table asked = { .file = { .limit_ms = limit_ms }, .memory_limit = PARSER_TABLE_BYTES };
	struct compile_stats stats;
	struct helper_call call = {
		.op = PARSE_TABLE, .timeout_ms = limit_ms + GRACE_MS, .request = &asked, .request_bytes = sizeof(asked),
		.answer = &stats, .answer_bytes = sizeof(stats), .wants_fd = true,
	};
	struct unwind_table table;
	struct object *object;
	uint64_t size;
	void *data;
	int fd;

	(void)state;
	object = open_object(fixture_build("large", "-O1",
		"__asm__(\".text; code: .space 480000 * 8; .previous; .section .eh_frame,\\\"a\\\";"
		"cie: .long cie_end - cie_body; cie_body: .long 0; .byte 1; .asciz \\\"zR\\\";"
		".uleb128 1; .sleb128 -8; .uleb128 " RA "; .uleb128 1; .byte 0x1b, 0x0c, " SP ", 8, 0x80 + " RA ", 1;"
		".balign 8; cie_end: .set n, 0; .rept 480000;"
		".long 16; .long . - cie; .long code + n * 8 - ., 8; .byte 0, 0x44, 0x0e, 16; .set n, n + 1;"
		".endr; .previous\");\nint main(void) { return 0; }\n"), &fd);
	asked.file.size = object->size;
	call.fd = fd;
	assert_int_equal(parser_ask(parser, object, &call), 0);
	assert_true(memfd_is_sealed(call.ret_fd, &size));
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, call.ret_fd, 0);
	assert_true(data != MAP_FAILED);
	close(call.ret_fd);
	assert_true(stats.memory > 8 << 20);
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	assert_true(table.row_count >= 960000);
	/* it costs by its rows */
	assert_true(size < 3 * table.row_count);
	parser_unmap(data, size);
	object_unref(object);
	close(fd);
}

static const char *inlined(void)
{
	return fixture_build("inlined", "-O2 -g -Wl,--build-id=0xbeef",
			     "#include <stdio.h>\n"
			     "static inline __attribute__((always_inline)) int inner_of_mine(int x)\n"
			     "{\n"
			     "	return printf(\"%d\", x) * 3;\n"
			     "}\n"
			     "__attribute__((noinline)) int outer_of_mine(int x) { return inner_of_mine(x) + x; }\n"
			     "int main(int c, char **v) { (void)v; return outer_of_mine(c); }\n");
}

/* ELF address of a function in it. */
static uint64_t address_of(const char *path, const char *name)
{
	return strtoull(fixture_ask("nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name), NULL, 16);
}

static void lines_are_looked_up_over_there(void **state)
{
	static struct lines_answer answer;
	const struct lines_frame *frame;
	uint64_t addresses[64], start;
	struct lines_facts facts;
	struct object *object;
	bool is_found = false;
	int fd;

	(void)state;
	object = open_object(inlined(), &fd);
	assert_int_equal(parser_debug(parser, object, fd, PARSER_LINES_MS, &facts), 0);
	assert_true(facts.is_elf && facts.has_dwarf && facts.has_symbols && facts.vaddr && facts.segment_count == 1);
	assert_string_equal(facts.build_id, "beef");
	assert_string_equal(facts.alt_build_id, "");
	start = address_of(fixture_path("inlined"), "outer_of_mine");
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		addresses[i] = start + i;
	/* nothing is open yet, and nothing stays open over another question */
	assert_int_equal(parser_lines(parser, object, addresses, 1, PARSER_LINES_MS, &answer), -ESTALE);
	assert_int_equal(parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_debug(parser, object, fd, PARSER_LINES_MS, &facts), 0);
	assert_int_equal(parser_lines(parser, object, addresses, 1, PARSER_LINES_MS, &answer), -ESTALE);

	assert_int_equal(parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_lines(parser, object, addresses, ARRAY_SIZE(addresses), PARSER_LINES_MS, &answer), 0);
	frame = answer.frames;
	for (size_t i = 0; i < ARRAY_SIZE(addresses) && !is_found; frame += answer.counts[i++])
		if (answer.counts[i] == 2) {
			is_found = true;
			assert_string_equal(answer.strings + frame[0].name, "inner_of_mine");
			assert_string_equal(answer.strings + frame[1].name, "outer_of_mine");
			assert_int_equal(frame[0].line, 4);
			assert_int_equal(frame[0].start_line, 2);
			assert_int_equal(frame[1].line, 6);
			assert_int_equal(frame[1].start_line, 6);
			assert_non_null(strstr(answer.strings + frame[0].file, "inlined.c"));
		}
	assert_true(is_found);
	lines_answer_free(&answer);
	/* asked again, without the file, and of symbols alone */
	assert_int_equal(parser_lines(parser, object, addresses, 0, PARSER_LINES_MS, &answer), 0);
	assert_int_equal(answer.frame_count, 0);
	lines_answer_free(&answer);
	assert_int_equal(parser_open_lines(parser, object, fd, false, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_lines(parser, object, addresses, 1, PARSER_LINES_MS, &answer), 0);
	assert_int_equal(answer.counts[0], 1);
	assert_string_equal(answer.strings + answer.frames[0].name, "outer_of_mine");
	assert_int_equal(answer.frames[0].line, 0);
	lines_answer_free(&answer);
	object_unref(object);
	close(fd);
}

static void ask_again(const struct object *object, int fd, int index, uint64_t size, int expected, uint64_t address)
{
	static struct lines_answer answer;

	assert_int_equal(parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_load_index(parser, object, index, size, PARSER_LINES_MS), expected);
	assert_int_equal(parser_lines(parser, object, &address, 1, PARSER_LINES_MS, &answer), 0);
	assert_true(answer.counts[0] > 0 && answer.frames[0].line > 0);
	lines_answer_free(&answer);
}

/* What one parser makes another takes, if it is of the file; what is damaged costs making it anew. */
static void an_index_is_made_once(void **state)
{
	static struct lines_answer answer;
	const uint64_t nowhere = 1;
	uint64_t address, size = 0, other_size;
	int fd, other_fd, index = -1, damaged;
	struct object *object, *other;
	uint8_t byte = 0;

	(void)state;
	object = open_object(inlined(), &fd);
	address = address_of(fixture_path("inlined"), "outer_of_mine");
	assert_int_equal(parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_save_index(parser, object, PARSER_LINES_MS, &index, &size), -ENODATA);
	assert_int_equal(parser_lines(parser, object, &nowhere, 1, PARSER_LINES_MS, &answer), 0);
	lines_answer_free(&answer);
	assert_int_equal(parser_save_index(parser, object, PARSER_LINES_MS, &index, &size), 0);
	assert_int_equal(parser_save_index(parser, object, PARSER_LINES_MS, &other_fd, &other_size), -ENODATA);
	ask_again(object, fd, index, size, 0, address);
	assert_int_equal(parser_lines(parser, object, &nowhere, 1, PARSER_LINES_MS, &answer), 0);
	lines_answer_free(&answer);
	assert_int_equal(parser_save_index(parser, object, PARSER_LINES_MS, &other_fd, &other_size), -ENODATA);

	ask_again(object, fd, index, size - 1, -EBADMSG, address);
	ask_again(object, fd, index, 0, -EBADMSG, address);
	ask_again(object, fd, index, UINT32_MAX, -EFBIG, address);
	for (uint64_t i = 0; i < size; i += 7) {
		damaged = memfd_create("damaged", MFD_CLOEXEC);
		for (uint64_t k = 0; k < size; k++) {
			assert_int_equal(pread(index, &byte, 1, (off_t)k), 1);
			byte ^= k == i;
			assert_int_equal(write(damaged, &byte, 1), 1);
		}
		ask_again(object, fd, damaged, size, -EBADMSG, address);
		close(damaged);
	}
	/* the same bytes and some behind them are another file */
	fixture_run("{ cat inlined; echo; } >longer");
	other = open_object(fixture_path("longer"), &other_fd);
	ask_again(other, other_fd, index, size, -EBADMSG, address);
	object_unref(other);
	object_unref(object);
	close(other_fd);
	close(index);
	close(fd);
}

/* Any byte of a debug file may be anything: it costs that answer, and what is said stays in bounds. */
static void damaged_lines_cost_an_answer(void **state)
{
	static struct lines_answer answer;
	const char *const changes[] = {
		"head -c 3000 inlined", "head -c 100 inlined", "cat inlined | tr '\\001-\\177' '\\002-\\200'",
		"cat /dev/null", "tail -c +2 inlined",
		"head -c 64 inlined; head -c 20000 /dev/zero | tr '\\000' '\\377'",
	};
	uint64_t address;
	struct object *object;
	int fd;

	(void)state;
	inlined();
	address = address_of(fixture_path("inlined"), "outer_of_mine");
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		fixture_run("{ %s; } >damaged", changes[i]);
		object = open_object(fixture_path("damaged"), &fd);
		object->ctime_ns = (int64_t)i;
		if (parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS) == 0 &&
		    parser_lines(parser, object, &address, 1, PARSER_LINES_MS, &answer) == 0)
			lines_answer_free(&answer);
		object_unref(object);
		close(fd);
	}
	object = open_object(fixture_path("inlined"), &fd);
	assert_int_equal(parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS), 0);
	assert_int_equal(parser_lines(parser, object, &address, 1, PARSER_LINES_MS, &answer), 0);
	assert_true(answer.counts[0] > 0);
	lines_answer_free(&answer);
	/* which closes what was open */
	assert_int_equal(parser_is_same(parser, object, fd), -ESTALE);
	object_unref(object);
	close(fd);
}

static void it_has_no_rights(void **state)
{
	(void)state;
	if (geteuid() == 0)
		assert_string_equal(status_of("Uid"), "65534\t65534\t65534\t65534");
	assert_string_equal(status_of("CapEff"), "0000000000000000");
	assert_string_equal(status_of("CapPrm"), "0000000000000000");
	assert_string_equal(status_of("NoNewPrivs"), "1");
	assert_string_equal(fixture_ask("tr '\\0' '\\n' </proc/%d/environ | grep -c SECRET || true",
					(int)pid()), "0");
	/* its end of the socket and the three that every process has */
	assert_string_equal(fixture_ask("ls /proc/%d/fd | sort -n | tail -n 1", (int)pid()), "3");
	if (helper().is_confined)
		assert_string_equal(status_of("Seccomp"), "2");
}

/* Questions that nobody asks are refused, and the next one is answered. */
static void wrong_questions_are_refused(void **state)
{
	static const uint8_t noise[HELPER_BYTES_MAX + 1];
	struct object *object;
	struct helper_stats stats;
	struct helper *asked;
	uint8_t answer[64];
	int fd;

	(void)state;
	object = open_object("/proc/self/exe", &fd);
	assert_int_equal(helper_new(HELPER_PARSER, &asked), 0);
	for (uint32_t op = 0; op < 40; op++) {
		const size_t sizes[] = { 0, 1, sizeof(struct parse_file), sizeof(struct parse_table),
					 sizeof(struct parse_dwarf), sizeof(struct parse_lines),
					 HELPER_BYTES_MAX };

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct helper_call call = {
				.op = op, .fd = -1, .timeout_ms = 10000,
				.request = noise, .request_bytes = sizes[i],
				.answer = answer, .answer_bytes = sizeof(answer),
			};

			/* what it has to be about is missing, whatever it is */
			assert_true(helper_call(asked, &call) < 0);
			assert_int_equal(call.ret_fd, -1);
		}
	}
	assert_int_equal(helper_call(asked, &(struct helper_call){
		.op = PARSE_FACTS, .fd = fd, .request = noise, .request_bytes = sizeof(noise) }), -E2BIG);
	helper_stats(asked, &stats);
	assert_int_equal(stats.deaths, 0);
	assert_int_equal(stats.starts, 1);
	helper_free(asked);
	object_unref(object);
	close(fd);
}

/* Nor is the pause before it, after a death: they say nothing of what is asked next. */
static void a_start_is_no_part_of_an_answer(void **state)
{
	struct helper_call call = { .fd = -1, .timeout_ms = 10000 };
	struct helper_stats stats;
	struct helper *asked;
	siginfo_t info;
	uint64_t began;
	int r;

	(void)state;
	assert_int_equal(helper_new(HELPER_PARSER, &asked), 0);
	assert_true(helper_call(asked, &call) < 0);
	helper_stats(asked, &stats);
	assert_int_equal(kill(stats.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)stats.pid, &info, WEXITED | WNOWAIT), 0);
	began = clock_monotonic();
	assert_int_equal(helper_call(asked, &call), -EAGAIN);
	assert_int_equal(call.ret_ns, 0);
	r = helper_call(asked, &call);
	assert_true(r < 0 && r != -EAGAIN);
	assert_true(call.ret_ns && call.ret_ns + 100 * NSEC_PER_MSEC <= clock_monotonic() - began);
	helper_free(asked);
}

/* A helper with nobody else to ask it, which has said hello. */
static int spawned(pid_t *ret_pid)
{
	struct pollfd pollfd = { .events = POLLIN };
	char hello[64];
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(helper_spawn(HELPER_PARSER, sockets[1], ret_pid), 0);
	close(sockets[1]);
	pollfd.fd = sockets[0];
	assert_int_equal(poll(&pollfd, 1, 60000), 1);
	assert_true(read(sockets[0], hello, sizeof(hello)) > 0);
	return sockets[0];
}

/* Who can send one can leave it any number of descriptors, which it knows nothing of. */
static void packets_that_are_no_questions_end_it(void **state)
{
	static struct {
		struct helper_header header;
		struct parse_file file;
	} question = { .header = { .op = PARSE_FACTS, .bytes = sizeof(struct parse_file) } };
	const struct {
		size_t bytes, fd_count;
	} packets[] = { { sizeof(question), 2 }, { sizeof(question), 3 }, { 4, 0 }, { 4, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(3 * sizeof(int))];
		} control = { 0 };
		struct iovec part = { .iov_base = &question, .iov_len = packets[i].bytes };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
		const int fds[3] = { STDERR_FILENO, STDERR_FILENO, STDERR_FILENO };
		char answer[64];
		int socket, status;
		pid_t helper;

		socket = spawned(&helper);
		if (packets[i].fd_count) {
			control.align = (struct cmsghdr){
				.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(packets[i].fd_count * sizeof(int)),
			};
			memcpy(CMSG_DATA(&control.align), fds, packets[i].fd_count * sizeof(int));
			message.msg_control = &control;
			message.msg_controllen = CMSG_SPACE(packets[i].fd_count * sizeof(int));
		}
		assert_int_equal(sendmsg(socket, &message, 0), packets[i].bytes);
		assert_int_equal(read(socket, answer, sizeof(answer)), 0);
		assert_int_equal(waitpid(helper, &status, 0), helper);
		assert_int_equal(status, 0);
		close(socket);
	}
}

/* A pack of pairs, each of the pair before, which is read, and the same by reference: 2^60 of them. */
static const char *riddle(unsigned int variant)
{
	static char text[1024];
	char *end = text + sprintf(text, "_Z1fIDp");

	for (int i = 0; i < 60; i++)
		end += sprintf(end, "St4pairI");
	end += sprintf(end, "iiE");
	for (int n = 60; n < 119; n++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		*end++ = 'S';
		if (n >= 36)
			*end++ = digits[n / 36];
		end += sprintf(end, "%c_E", digits[n % 36]);
	}
	sprintf(end, "Evv.%u", variant);
	return text;
}

static void names_are_demangled_over_there(void **state)
{
	const uint64_t deaths = helper().deaths;
	char name[DEMANGLE_MAX], longest[DEMANGLE_INPUT_MAX + 2];
	uint64_t calls;

	(void)state;
	assert_int_equal(parser_demangle(parser, "_ZN3foo3barEv", name), 0);
	assert_string_equal(name, "foo::bar");
	assert_int_equal(parser_demangle_now(parser, "_RNvCs15kBYyAo9fc_7mycrate7example", name), 0);
	assert_string_equal(name, "mycrate::example");
	assert_int_equal(parser_demangle(parser, "_Zebra", name), -ENODATA);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(parser_demangle(parser, riddle(i), name), -ENODATA);
	assert_int_equal(helper().deaths, deaths);
	assert_int_equal(parser_demangle(parser, "_D4test3fooFiZv", name), 0);
	assert_string_equal(name, "test.foo");
	/* what cannot be one is not even asked */
	calls = helper().calls;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "_Z", 2);
	assert_int_equal(parser_demangle(parser, longest, name), -ENODATA);
	assert_int_equal(parser_demangle(parser, "main", name), -ENODATA);
	assert_int_equal(helper().calls, calls);
}

/* The first name that the parser dies of and the next; those that come then are left as they are. */
static void names_that_it_dies_of_are_left(void **state)
{
	char name[DEMANGLE_MAX];
	uint64_t calls;

	(void)state;
	for (int i = 0; i < PARSER_DEATHS_MAX; i++) {
		assert_int_equal(parser_demangle(parser, "_ZN3foo3barEv", name), 0);
		kill(pid(), SIGSTOP);
		assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), -ENODATA);
	}
	assert_int_equal(helper().timeouts, PARSER_DEATHS_MAX);
	calls = helper().calls;
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), -ENODATA);
	assert_int_equal(helper().calls, calls);
}

static void a_crash_costs_one_answer(void **state)
{
	const uint64_t deaths = helper().deaths;
	struct object *object;
	int fd, r;

	(void)state;
	object = open_object(program(), &fd);
	kill(pid(), SIGKILL);
	r = parser_facts(parser, object, fd);
	assert_true(r == -EPIPE || r == -EAGAIN);
	assert_int_equal(helper().deaths, deaths + 1);
	assert_int_equal(helper().pid, 0);
	assert_int_equal(in_the_end(parser_facts, object, fd), 0);
	object_unref(object);
	close(fd);
}

/* What is read in a part of the time may be a part of what is there, and would be kept as all of it. */
static void a_question_without_all_of_its_time_is_not_asked(void **state)
{
	struct deadline deadline = { 0 };
	struct object *object;
	struct symtab *symtab;
	char name[SYMTAB_NAME_MAX];
	struct parser_sum sum = { 0 };
	struct lines_link link;
	struct code_read code;
	uint64_t calls;
	int fd, r, tries = 20;

	(void)state;
	pid();
	object = open_object(program(), &fd);
	calls = helper().calls;
	parser_until(parser, &deadline);
	deadline_set(&deadline, in_ms(PARSER_READ_MS - 1));
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), -ETIME);
	assert_int_equal(parser_mini_symtab(parser, object, fd, &reclaim, &symtab), -ETIME);
	assert_int_equal(parser_facts(parser, object, fd), -ETIME);
	/* of who waits a table has more, and all else what it always has */
	parser_wait(parser, true);
	deadline_set(&deadline, in_ms(PARSER_WAIT_MS - 1));
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), -ETIME);
	assert_int_equal(helper().calls, calls);
	assert_int_equal(parser_link(parser, object, fd, &link), -ENODATA);
	r = parser_code(parser, object, fd, false, 0, object->size, &code);
	assert_int_not_equal(r, -ETIME);
	if (!r)
		code_table_free(&code.table);
	calls = helper().calls;
	parser_wait(parser, false);
	deadline_set(&deadline, in_ms(PARSER_SUM_MS - 1));
	assert_int_equal(parser_sum(parser, object, fd, &sum), -ETIME);
	assert_int_equal(sum.at, 0);
	assert_int_equal(parser_link(parser, object, fd, &link), -ETIME);
	/* nor is one of who is past it */
	deadline_set(&deadline, clock_monotonic());
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), -ETIME);
	assert_int_equal(helper().calls, calls);
	/* a name is no file */
	deadline_set(&deadline, in_ms(PARSER_READ_MS - 1));
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), 0);
	assert_string_equal(name, "foo::bar");
	deadline_set(&deadline, in_ms(60 * 1000));
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), 0);
	symtab_free(symtab);
	/* who hangs then does so in time that is its own */
	kill(pid(), SIGSTOP);
	do {
		deadline_set(&deadline, in_ms(PARSER_READ_MS + 500));
		r = parser_symtab(parser, object, fd, &reclaim, &symtab);
	} while (r == -ETIME && tries--);
	assert_int_equal(r, -ETIMEDOUT);
	assert_true(clock_monotonic() >= atomic_load(&deadline.at));
	deadline.is_over = true;
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), -ETIME);
	/* one that has to be started first is waited for as long, and where there is no end as long as it takes */
	assert_int_equal(deadline_start_ms(&deadline), 1);
	deadline.is_over = false;
	deadline_set(&deadline, DEADLINE_NONE);
	assert_int_equal(deadline_start_ms(&deadline), 0);
	parser_until(parser, NULL);
	close(fd);
	object_unref(object);
}

static void a_file_that_hangs_is_set_apart(void **state)
{
	struct parser_stats stats;
	struct object *object, *other;
	int fd, other_fd;

	(void)state;
	fixture_run("cp '%s' hanging", program());
	object = open_object(fixture_path("hanging"), &fd);
	for (unsigned int i = 0; i < PARSER_DEATHS_MAX; i++) {
		const pid_t stopped = pid();
		const uint64_t timeouts = helper().timeouts;

		kill(stopped, SIGSTOP);
		assert_int_equal(in_the_end(ask_is_same, object, fd), -ETIMEDOUT);
		assert_int_equal(helper().timeouts, timeouts + 1);
		assert_true(helper().pid != stopped);
	}
	/* none is in the kernel's hands: they end as soon as the host has time for that */
	for (int seconds = 60; helper().abandoned && seconds--;)
		sleep(1);
	assert_int_equal(helper().abandoned, 0);
	assert_int_equal(in_the_end(parser_facts, object, fd), -ENOTRECOVERABLE);
	parser_stats(parser, &stats);
	assert_int_equal(stats.set_apart, 1);
	assert_non_null(strstr(stats.last_set_apart, "hanging: the parser did not finish"));
	/* others are read as before */
	other = open_object("/proc/self/exe", &other_fd);
	assert_int_equal(in_the_end(parser_facts, other, other_fd), 0);
	object_unref(object);
	object_unref(other);
	close(fd);
	close(other_fd);
}

/* One whose table takes a while, whatever else is done meanwhile. */
static struct object *open_crowd(int *ret_fd)
{
	if (access(fixture_path("crowd"), F_OK))
		fixture_run("(seq 200000 | sed 's/.*/__asm__(\"f&: .cfi_startproc; nop; .cfi_def_cfa_offset 32; nop; .cfi_endproc\");/'; "
			    "echo 'int main(void) { return 0; }') >crowd.c && ${CC:-gcc} -o crowd crowd.c");
	return open_object(fixture_path("crowd"), ret_fd);
}

struct paying {
	int64_t spent;		/* ns: what questions took of the credit, */
	uint64_t took;		/* and of the time */
};

/* Nothing is added to the credit meanwhile. */
static struct paying pay(void)
{
	parser->credit.credit.part = UINT_MAX;
	return (struct paying){ .spent = parser->credit.credit.left, .took = clock_monotonic() };
}

static void pay_end(struct paying *paying)
{
	paying->spent -= parser->credit.credit.left;
	paying->took = clock_monotonic() - paying->took;
}

/* Asleep, or stopped, is not without a CPU: files can be made to take long in many ways. */
static void what_waits_for_no_cpu_is_paid_in_full(void **state)
{
	struct paying paying;
	struct object *object;
	int fd;

	(void)state;
	object = open_object("/proc/self/exe", &fd);
	kill(pid(), SIGSTOP);
	paying = pay();
	assert_int_equal(parser_is_same(parser, object, fd), -ETIMEDOUT);
	pay_end(&paying);
	assert_in_range(paying.spent, (PARSER_READ_MS + GRACE_MS) * NSEC_PER_MSEC, paying.took);
	close(fd);
	object_unref(object);
}

/* What the parser is asked in this time while it has no CPU comes to; 0: it had one each time. */
static int ask_without_a_cpu(const struct object *object, int fd, unsigned int timeout_ms, bool is_waiting,
			     uint64_t *ret_calls)
{
	struct paying paying;
	const struct parse_table table = {
		.file = { .size = object->size, .limit_ms = COMPILE_MS }, .memory_limit = PARSER_TABLE_BYTES,
	};
	struct compile_stats stats;
	struct helper_call call = {
		.op = PARSE_TABLE, .fd = fd, .timeout_ms = timeout_ms,
		.request = &table, .request_bytes = sizeof(table),
		.answer = &stats, .answer_bytes = sizeof(stats), .wants_fd = true,
	};
	int r = 0;

	starve_confine();
	parser_free(parser);
	assert_int_equal(parser_new(&parser), 0);
	parser_wait(parser, is_waiting);
	starve_begin(pid());
	for (int i = 0; i < 20 && !r && !helper().starved; i++) {
		*ret_calls = helper().calls;
		paying = pay();
		r = parser_ask_for_names(parser, object, &call);
		pay_end(&paying);
		if (!r)
			close(call.ret_fd);
		*ret_calls = helper().calls - *ret_calls;
	}
	starve_end();
	/* it had less than half of the time; that this process had no CPU before or after the question is no matter of the parser's */
	if (r && !is_waiting) {
		assert_true(call.ret_ns <= call.ret_starved_ns);
		assert_in_range(paying.spent, timeout_ms * NSEC_PER_MSEC / 2,
				paying.took - min_of(call.ret_starved_ns, paying.took / 2));
	}
	return r;
}

/* Nor is it set apart: what the parser has no CPU for says nothing of a file. */
static void a_parser_without_a_cpu_accuses_no_file(void **state)
{
	struct parser_stats stats;
	struct object *object;
	uint64_t calls;
	int fd;

	(void)state;
	object = open_crowd(&fd);
	assert_int_equal(ask_without_a_cpu(object, fd, GRACE_MS, false, &calls), -EAGAIN);
	parser_stats(parser, &stats);
	assert_int_equal(stats.helper.starved, 1);
	/* it was killed for that */
	assert_int_equal(stats.helper.timeouts, 1);
	assert_true(parser->suspects.all[0].blame < 100);
	assert_int_equal(stats.set_apart, 0);
	assert_int_equal(in_the_end(ask_is_same, object, fd), -ESTALE);
	close(fd);
	object_unref(object);
}

/* Whoever waits asks again what the parser had no CPU for, but for what takes long: other files come first. */
static void who_waits_asks_again(void **state)
{
	struct object *object;
	uint64_t calls;
	int fd, r;

	(void)state;
	object = open_crowd(&fd);
	r = ask_without_a_cpu(object, fd, PARSER_READ_MS + GRACE_MS, true, &calls);
	/* another parser may have had one */
	assert_true(!r || r == -EAGAIN);
	assert_true(helper().starved > 0);
	assert_true(parser_starved(parser) >= helper().starved);
	assert_in_range(calls, 2, PARSER_TRIES);
	assert_int_equal(ask_without_a_cpu(object, fd, PARSER_READ_MS + GRACE_MS + 1, true, &calls), -EAGAIN);
	assert_int_equal(calls, 1);
	/* until there is no time for more */
	parser->is_starved = true;
	assert_true(parser_may_try_again(parser, -EAGAIN, &(unsigned int){ 2 }));
	assert_false(parser_may_try_again(parser, -EAGAIN, &(unsigned int){ 1 }));
	parser_until(parser, &(struct deadline){ .is_over = true });
	assert_false(parser_may_try_again(parser, -EAGAIN, &(unsigned int){ 2 }));
	parser_until(parser, NULL);
	close(fd);
	object_unref(object);
}

static const struct parser_work long_ago;

/* Who waits is refused none of the time and takes nothing from what others have. */
static void who_waits_takes_nothing_from_others(void **state)
{
	char name[SYMTAB_NAME_MAX];

	(void)state;
	parser_pay(parser, 7);
	parser_wait(parser, true);
	parser_spend(parser, &long_ago);
	assert_true(parser_paid(parser, 7) > 0);
	parser_wait(parser, false);
	assert_int_equal(parser_paid(parser, 7), 0);
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), 0);
	parser_spend(parser, &long_ago);
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), -EDQUOT);
	parser_wait(parser, true);
	assert_int_equal(parser_demangle_now(parser, "_ZN3foo3barEv", name), 0);
}

/* It goes on where it was, and what it comes to is that of the file as a whole. */
static void a_long_sum_is_made_in_parts(void **state)
{
	static uint8_t bytes[1 << 20];
	struct parser_sum sum = { 0 };
	uLong crc = crc32(0, NULL, 0);
	struct object *object;
	unsigned int parts = 1;
	int fd;

	(void)state;
	fixture_run("head -c 3000000 '%s' >summed && truncate -s 300M summed && printf end >>summed", program());
	object = open_object(fixture_path("summed"), &fd);
	while (parser_sum(parser, object, fd, &sum) == -EAGAIN) {
		assert_true(sum.at > 0 && sum.at < object->size && sum.at <= (uint64_t)parts * PARSER_SUM_BYTES);
		parts++;
	}
	assert_true(parts >= 3);
	assert_int_equal(sum.at, object->size);
	for (ssize_t got; (got = read(fd, bytes, sizeof(bytes))) > 0;)
		crc = crc32(crc, bytes, (uInt)got);
	assert_int_equal(sum.crc, crc);
	/* it is known, and nobody is asked */
	kill(pid(), SIGSTOP);
	assert_int_equal(parser_sum(parser, object, fd, &sum), 0);
	kill(pid(), SIGCONT);
	/* a file that has become shorter has no such sum */
	object->size++;
	assert_int_equal(parser_sum(parser, object, fd, &sum), -EIO);
	object_unref(object);
	close(fd);
}

/* However long it is, a part has its time; the first bytes of each are read whatever that is. */
static void a_part_of_a_sum_takes_its_time(void **state)
{
	struct parser_sum sum = { 0 }, before;
	struct object *object;
	int fd, r;

	(void)state;
	fixture_run("truncate -s 6T summed");
	object = open_object(fixture_path("summed"), &fd);
	for (unsigned int i = 0; i < 3; i++) {
		int tries = 60;

		before = sum;
		/* of a parser that has no CPU there is no part, nor is there one while others' time is kept */
		do
			r = parser_sum(parser, object, fd, &sum);
		while (sum.at == before.at && (r == -EAGAIN || r == -EDQUOT) && tries-- && !sleep(1));
		/* else it has been killed for the time that it took */
		assert_int_equal(r, -EAGAIN);
		assert_true(sum.at > before.at && sum.at - before.at <= PARSER_SUM_BYTES);
	}
	object_unref(object);
	close(fd);
}

/* As thread A does it, which waits for memory. */
static void *hurry_soon(void *ctx)
{
	struct deadline *deadline = ctx;

	usleep(500000);
	atomic_store_explicit(&deadline->is_over, true, memory_order_relaxed);
	return NULL;
}

/* Asks a parser that is stopped for a table of functions, and is in a hurry soon. How long it waited. */
static uint64_t ask_in_a_hurry(const struct object *object, int fd)
{
	const uint64_t began = clock_monotonic();
	struct deadline deadline = { .at = DEADLINE_NONE };
	struct symtab *symtab;
	pthread_t hurrying;
	uint64_t took;
	int r;

	parser_until(parser, &deadline);
	assert_int_equal(pthread_create(&hurrying, NULL, hurry_soon, &deadline), 0);
	r = parser_symtab(parser, object, fd, &reclaim, &symtab);
	took = clock_monotonic() - began;
	pthread_join(hurrying, NULL);
	parser_until(parser, NULL);
	assert_int_equal(r, -EAGAIN);
	return took;
}

/* It may be ready by the next question: so it is let go on, and nothing is held against it. */
static void a_hurry_ends_the_wait_for_a_start(void **state)
{
	struct symtab *symtab;
	struct object *object;
	int fd, tries = 20;
	uint64_t took;
	pid_t stopped;

	object = open_object(program(), &fd);
	/* on a busy host it may say hello before it is stopped: then it is asked, and another one has to be started */
	do {
		assert_int_equal(teardown(state) ?: setup(state), 0);
		stopped = helper().pid;
		kill(stopped, SIGSTOP);
		took = ask_in_a_hurry(object, fd);
	} while (helper().calls && tries--);
	assert_int_equal(helper().calls, 0);
	assert_in_range(took, NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	assert_int_equal(helper().deaths + helper().timeouts, 0);
	kill(stopped, SIGCONT);
	assert_int_equal(pid(), stopped);
	assert_int_equal(parser_symtab(parser, object, fd, &reclaim, &symtab), 0);
	symtab_free(symtab);
	object_unref(object);
	close(fd);
}

/* It says that it has all the memory there is, and has a byte. */
static void a_file_without_an_end_costs_no_memory(void **state)
{
	struct compile_stats stats;
	struct object *object;
	const void *data;
	size_t size;
	int fd, r;

	(void)state;
	fixture_run("cp '%s' endless && truncate -s 6T endless", program());
	object = open_object(fixture_path("endless"), &fd);
	r = parser_facts(parser, object, fd);
	assert_true(r == 0);
	r = parser_table(parser, object, fd, &data, &size, &stats);
	assert_int_equal(r, -EFBIG);
	assert_true(helper().resident < (uint64_t)256 << 20);
	object_unref(object);
	close(fd);
}

/* Half of a byte would be looked up behind the text's end. */
static void an_id_is_of_whole_bytes(void **state)
{
	(void)state;
	assert_true(parser_is_id("", 41) && parser_is_id("ab", 41) && parser_is_id("abcd", 41));
	assert_false(parser_is_id("a", 41) || parser_is_id("abc", 41));
	assert_false(parser_is_id("xy", 41) || parser_is_id("abcd", 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_of_whole_bytes),
		cmocka_unit_test_setup_teardown(files_are_read_over_there, setup, teardown),
		cmocka_unit_test_setup_teardown(long_string_tables_stay_in_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_changes_is_compiled_as_it_was_named, setup, teardown),
		cmocka_unit_test_setup_teardown(large_files_have_their_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_are_looked_up_over_there, setup, teardown),
		cmocka_unit_test_setup_teardown(an_index_is_made_once, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_lines_cost_an_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(it_has_no_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_questions_are_refused, setup, teardown),
		cmocka_unit_test(a_start_is_no_part_of_an_answer),
		cmocka_unit_test(packets_that_are_no_questions_end_it),
		cmocka_unit_test_setup_teardown(names_are_demangled_over_there, setup, teardown),
		cmocka_unit_test_setup_teardown(names_that_it_dies_of_are_left, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crash_costs_one_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_hangs_is_set_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_parser_without_a_cpu_accuses_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(what_waits_for_no_cpu_is_paid_in_full, setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits_asks_again, setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits_takes_nothing_from_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_question_without_all_of_its_time_is_not_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_sum_is_made_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_part_of_a_sum_takes_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hurry_ends_the_wait_for_a_start, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_without_an_end_costs_no_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
