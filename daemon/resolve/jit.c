// SPDX-License-Identifier: Apache-2.0
#include "resolve/jit.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "resolve/runtime.h"

#define REFRESH_NS NSEC_PER_SEC
#define ABSENT_MAX_NS (30 * NSEC_PER_SEC)	/* between two looks for a file that is not there */

enum {
	REFRESH_PART = 8,	/* of a process' time, one in so many may go into reading what it says */
	JIT_LEAST_MS = 250 + PARSER_READ_MS,	/* for one of those that a window has no time for */
};

/* A perf map, or a jitdump. */
struct code_file {
	int fd;			/* -1: none */
	uint64_t dev, inode, size;
	uint64_t end;		/* read so far */
	struct code_table table;
	size_t bytes;		/* charged for it */
	uint64_t next, delay;	/* when it is looked at again */
	bool is_told;		/* that it is refused */
	int error;		/* of the last look, 0: none */
};

struct jit {
	struct image *image;	/* owned */
	struct mapped_file *dump_file;	/* owned; NULL: it has mapped none */
	struct code_file map, dump;
	uint64_t used, took;	/* took: the last time that anything was read, ns */
	uint64_t refreshed;	/* when that was, 0: never */
	bool is_wanted;
	size_t wants;		/* how often in this window */
	enum frame_runtime runtime;
	size_t budget;		/* bytes that names may take in this window */
};

struct jits {
	struct opener *opener;
	struct parser *parser;
	struct mount_namespace_table *spaces;
	struct objects *objects;
	struct jit *jits[JIT_PROCESSES_MAX];
	size_t count;
	size_t bytes;
	const struct deadline *window;	/* of all that is done for it, borrowed */
	uint64_t deadline;	/* of reading, then of names */
	const struct code *named;	/* the last one, NULL: none in this window */
	char name[CODE_NAME_MAX];
	struct jit_stats stats;
};

int jits_new(struct opener *opener, struct parser *parser, struct mount_namespace_table *spaces,
	     struct objects *objects, struct jits **ret_jits)
{
	struct jits *jits = calloc(1, sizeof(*jits));

	if (!jits)
		return -ENOMEM;
	jits->opener = opener;
	jits->parser = parser;
	jits->spaces = spaces;
	jits->objects = objects;
	*ret_jits = jits;
	return 0;
}

static void drop_table(struct jits *jits, struct code_file *file)
{
	code_table_free(&file->table);
	pool_uncharge(POOL_SYMBOLS, file->bytes);
	jits->bytes -= file->bytes;
	file->bytes = 0;
	file->end = 0;
}

static void close_file(struct jits *jits, struct code_file *file)
{
	drop_table(jits, file);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static void remove_jit(struct jits *jits, size_t i)
{
	struct jit *jit = jits->jits[i];

	close_file(jits, &jit->map);
	close_file(jits, &jit->dump);
	image_unref(jit->image);
	if (jit->dump_file)
		mapped_file_unref(jit->dump_file);
	pool_uncharge(POOL_SYMBOLS, sizeof(*jit));
	free(jit);
	jits->jits[i] = jits->jits[--jits->count];
}

void jits_free(struct jits *jits)
{
	if (!jits)
		return;
	while (jits->count)
		remove_jit(jits, jits->count - 1);
	free(jits);
}

void jits_begin(struct jits *jits, const struct deadline *deadline)
{
	jits->window = deadline;
	jits->deadline = clock_monotonic() + JIT_WINDOW_NS;
	jits->named = NULL;
	for (size_t i = 0; i < jits->count; i++)
		jits->jits[i]->is_wanted = false;
}

static bool evict_one(struct jits *jits)
{
	size_t oldest = JIT_PROCESSES_MAX;

	for (size_t i = 0; i < jits->count; i++)
		if (!jits->jits[i]->is_wanted && (oldest == JIT_PROCESSES_MAX ||
						  jits->jits[i]->used < jits->jits[oldest]->used))
			oldest = i;
	if (oldest == JIT_PROCESSES_MAX)
		return false;
	remove_jit(jits, oldest);
	return true;
}

static struct jit *get(struct jits *jits, struct image *image)
{
	struct jit *jit;

	for (size_t i = 0; i < jits->count; i++)
		if (jits->jits[i]->image == image)
			return jits->jits[i];
	if (jits->count == JIT_PROCESSES_MAX && !evict_one(jits))
		return NULL;
	if (!pool_charge(POOL_SYMBOLS, sizeof(*jit)))
		return NULL;
	jit = calloc(1, sizeof(*jit));
	if (!jit) {
		pool_uncharge(POOL_SYMBOLS, sizeof(*jit));
		return NULL;
	}
	jit->image = image_ref(image);
	jit->map.fd = jit->dump.fd = -1;
	jit->used = clock_monotonic();
	jits->jits[jits->count++] = jit;
	return jit;
}

bool jit_is_dump(const struct mapped_file *file)
{
	const char *name = strrchr(file->path, '/');
	size_t digits;

	if (file->kind != OBJECT_FILE || !name || strncmp(name, "/jit-", 5))
		return false;
	digits = strspn(name + 5, "0123456789");
	return digits && !strcmp(name + 5 + digits, ".dump");
}

void jits_see_file(struct jits *jits, struct image *image, struct mapped_file *file)
{
	struct jit *jit;

	if (!jit_is_dump(file))
		return;
	jit = get(jits, image);
	if (!jit || jit->dump_file == file)
		return;
	if (jit->dump_file)
		mapped_file_unref(jit->dump_file);
	jit->dump_file = mapped_file_ref(file);
	close_file(jits, &jit->dump);
	jit->dump.next = 0;
}

struct jit *jits_want(struct jits *jits, struct image *image)
{
	const struct image_details *details = image_details(image);
	struct jit *jit = get(jits, image);

	if (!jit)
		return NULL;
	if (!jit->is_wanted) {
		jit->budget = NAMES_OBJECT_MAX_BYTES;
		jit->wants = 0;
	}
	jit->wants++;
	if (!jit->runtime && details && details->executable_name)
		jit->runtime = runtime_of_program(details->executable_name);
	jit->used = clock_monotonic();
	jit->is_wanted = true;
	return jit;
}

int jit_compare(const struct jit *a, const struct jit *b)
{
	if (a->wants != b->wants)
		return a->wants < b->wants ? -1 : 1;
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

void jit_sees_library(struct jit *jit, const char *path)
{
	if (!jit->runtime)
		jit->runtime = runtime_of_library(path);
}

uint32_t jit_payer(const struct jit *jit)
{
	return jit->image->payer;
}

enum frame_runtime jit_runtime(const struct jit *jit)
{
	return jit->runtime;
}

size_t *jit_budget(struct jit *jit)
{
	return &jit->budget;
}

/* Memory of the pool, of others that are not wanted now, or of objects. */
static bool charge(struct jits *jits, size_t bytes)
{
	while (jits->bytes + bytes > JIT_MAX_BYTES)
		if (!evict_one(jits))
			return false;
	while (!pool_charge(POOL_SYMBOLS, bytes))
		if (!evict_one(jits) && !objects_make_room(jits->objects, bytes))
			return false;
	jits->bytes += bytes;
	return true;
}

static void uncharge(struct jits *jits, size_t bytes)
{
	pool_uncharge(POOL_SYMBOLS, bytes);
	jits->bytes -= bytes;
}

static int take(struct jits *jits, struct code_file *file, const struct code_table *table)
{
	const size_t bytes = code_table_lay_bytes(&file->table, table);
	const uint64_t dropped = file->table.dropped;
	size_t kept;
	int r;

	if (!charge(jits, bytes))
		return -ENOBUFS;
	r = code_table_lay(&file->table, table);
	if (r < 0) {
		uncharge(jits, bytes);
		return r;
	}
	jits->stats.dropped += file->table.dropped - dropped;
	kept = (file->table.count + 1) * sizeof(*file->table.codes);
	uncharge(jits, file->bytes);
	uncharge(jits, bytes - min_of(kept, bytes));
	file->bytes = min_of(kept, bytes);
	return 0;
}

static void refuse(struct jits *jits, struct jit *jit, struct code_file *file, const char *why)
{
	if (file->is_told)
		return;
	jits->stats.refused_files++;
	log_warning("process %u: its %s is not read: %s", jit->image->tgid,
		    file == &jit->map ? "perf map" : "jitdump", why);
	file->is_told = true;
}

/* A file's size and times change with each line; what it may make the parser do does not. */
static struct object stand_in(const struct code_file *file)
{
	static char path[] = "what a runtime says of its code";

	return (struct object){
		.kind = OBJECT_FILE, .dev = file->dev, .inode = file->inode, .path = path,
	};
}

static int read_file(struct jits *jits, struct jit *jit, struct code_file *file)
{
	const struct object object = stand_in(file);
	const uint64_t size = min_of(file->size, CODE_FILE_MAX);
	struct code_read read;
	int r;

	if (size <= file->end)
		return 0;
	parser_pay(jits->parser, jit->image->payer);
	r = parser_code(jits->parser, &object, file->fd, file == &jit->dump, file->end, size, &read);
	if (r < 0)
		return r;
	if (read.needs_all) {
		code_table_free(&read.table);
		drop_table(jits, file);
		r = parser_code(jits->parser, &object, file->fd, file == &jit->dump, 0, size, &read);
		if (r < 0)
			return r;
	}
	r = take(jits, file, &read.table);
	/* else those before stay, and these are read again */
	if (r == 0) {
		file->end = read.end;
		jits->stats.bad_entries += read.bad;
	}
	code_table_free(&read.table);
	return r;
}

static int open_map(struct jits *jits, struct jit *jit, int *ret_fd, struct stat *ret_stat)
{
	const struct image_details *details = image_details(jit->image);
	const struct opener_process process = {
		.start_time = jit->image->start_time, .tgid = jit->image->tgid,
		.pid_in_namespace = details ? details->pid_in_namespace : 0,
		.user = details ? details->user : DETAILS_NO_USER,
	};

	return opener_perf_map(jits->opener, jits->spaces, jit->image->mount_namespace, &process,
			       ret_fd, ret_stat);
}

static int open_dump(struct jits *jits, struct jit *jit, int *ret_fd, struct stat *ret_stat)
{
	const struct mapped_file *file = jit->dump_file;
	const struct opener_wanted wanted = {
		.major = file->major, .minor = file->minor, .inode = file->inode, .path = file->path,
	};

	return opener_open(jits->opener, jits->spaces, jit->image->mount_namespace, jit->image->tgid,
			   &wanted, ret_fd, ret_stat);
}

static void look_again(struct code_file *file, uint64_t now, uint64_t took, bool is_there)
{
	file->delay = is_there || !file->delay ? REFRESH_NS :
		      min_of(2 * file->delay, (uint64_t)ABSENT_MAX_NS);
	file->next = now + max_of(file->delay, REFRESH_PART * took);
}

static const char *why_refused(int error)
{
	switch (error) {
	case -EPERM:
		return "another user owns it";
	case -ENXIO:
		return "it is not a regular file";
	case -ESTALE:
		return "it is older than the process, or was replaced";
	case -EBADMSG:
		return "it is not a jitdump of a program of this host: another version or byte order";
	case -ENOTRECOVERABLE:
		return "the parser crashed or hung on it";
	default:
		return NULL;
	}
}

static bool is_due(const struct jit *jit, const struct code_file *file, uint64_t now)
{
	return now >= file->next && (file == &jit->map || jit->dump_file);
}

static void refresh(struct jits *jits, struct jit *jit, struct code_file *file)
{
	const uint64_t began = clock_monotonic();
	_cleanup_close_ int fd = -1;
	struct stat st;
	uint64_t now;
	int r;

	if (!is_due(jit, file, began))
		return;
	r = file == &jit->map ? open_map(jits, jit, &fd, &st) : open_dump(jits, jit, &fd, &st);
	if (r == 0) {
		if (file->fd >= 0 && (st.st_dev != file->dev || st.st_ino != file->inode ||
				      (uint64_t)st.st_size < file->end))
			drop_table(jits, file);
		if (file->fd >= 0)
			close(file->fd);
		file->fd = steal_fd(&fd);
		file->dev = st.st_dev;
		file->inode = st.st_ino;
		file->size = (uint64_t)st.st_size;
		r = read_file(jits, jit, file);
	}
	file->error = r;
	if (why_refused(r))
		refuse(jits, jit, file, why_refused(r));
	now = clock_monotonic();
	jit->took = now - began;
	jit->refreshed = now;
	look_again(file, now, jit->took, file->fd >= 0);
}

static bool is_in_time(const struct jits *jits)
{
	return clock_monotonic() < jits->deadline && deadline_left_ns(jits->window);
}

static bool has_time_to_read(const struct jits *jits)
{
	return is_in_time(jits) && deadline_left_ms(jits->window, PARSER_READ_MS) == PARSER_READ_MS;
}

static int compare_took(const void *a, const void *b)
{
	const struct jit *x = *(struct jit *const *)a, *y = *(struct jit *const *)b;

	return (x->took > y->took) - (x->took < y->took);
}

static void refresh_both(struct jits *jits, struct jit *jit)
{
	refresh(jits, jit, &jit->map);
	refresh(jits, jit, &jit->dump);
}

/*
 * Of those that there was no time for one has some all the same, the one that waits longest: else on a host where
 * windows are late each time none of them ever had names. Who is in a hurry does not wait for it.
 */
static void refresh_one(struct jits *jits, struct jit *const *jit, size_t count)
{
	const uint64_t now = clock_monotonic();
	struct deadline deadline = { 0 };
	struct jit *oldest = NULL;

	for (size_t i = 0; i < count; i++)
		if ((is_due(jit[i], &jit[i]->map, now) || is_due(jit[i], &jit[i]->dump, now)) &&
		    (!oldest || jit[i]->refreshed < oldest->refreshed))
			oldest = jit[i];
	if (!oldest || deadline_is_over(jits->window))
		return;
	deadline_set(&deadline, now + JIT_LEAST_MS * NSEC_PER_MSEC);
	parser_until(jits->parser, &deadline);
	opener_until(jits->opener, &deadline);
	refresh_both(jits, oldest);
	parser_until(jits->parser, jits->window);
	opener_until(jits->opener, jits->window);
}

void jits_refresh(struct jits *jits)
{
	struct jit *wanted[JIT_PROCESSES_MAX];
	size_t i, count = 0;

	/* making room removes those that are not wanted */
	for (i = 0; i < jits->count; i++)
		if (jits->jits[i]->is_wanted)
			wanted[count++] = jits->jits[i];
	qsort(wanted, count, sizeof(struct jit *), compare_took);
	for (i = 0; i < count && has_time_to_read(jits); i++)
		refresh_both(jits, wanted[i]);
	if (i < count)
		refresh_one(jits, wanted + i, count - i);
	jits->deadline = clock_monotonic() + JIT_NAMES_NS;
}

static int read_name(struct jits *jits, const struct code_file *file, bool is_dump, const struct code *code)
{
	const struct object object = stand_in(file);
	int r;

	if (jits->named == code)
		return 0;
	jits->named = NULL;
	/* each is a question: files have to have their names as well */
	if (!is_in_time(jits))
		return -ETIME;
	r = parser_code_name(jits->parser, &object, file->fd, is_dump, code, jits->name);
	if (!r)
		jits->named = code;
	return r;
}

int jit_name(struct jits *jits, struct jit *jit, uint64_t address, char ret_name[static CODE_NAME_MAX],
	     bool *ret_is_dump)
{
	struct code_file *const files[] = { &jit->dump, &jit->map };
	int error = -ENODATA, r;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct code *code = code_table_find(&files[i]->table, address);

		if (code && files[i]->fd >= 0) {
			*ret_is_dump = files[i] == &jit->dump;
			r = read_name(jits, files[i], *ret_is_dump, code);
			if (!r)
				strcpy(ret_name, jits->name);
			return r;
		}
		if (files[i]->error == -ENOBUFS)
			error = -ENOBUFS;
	}
	return error;
}

/* Files are announced once: as long as the image runs, its jitdump is known by this alone. */
static bool is_needed(const struct jit *jit)
{
	return jit->dump_file &&
	       atomic_load_explicit(&jit->image->refs, memory_order_relaxed) > 1;
}

void jits_trim(struct jits *jits, uint64_t idle_ns)
{
	const uint64_t now = clock_monotonic();

	for (size_t i = jits->count; i-- > 0;) {
		struct jit *jit = jits->jits[i];

		if (now - jit->used < idle_ns)
			continue;
		if (is_needed(jit)) {
			close_file(jits, &jit->map);
			close_file(jits, &jit->dump);
		} else {
			remove_jit(jits, i);
		}
	}
}

const struct jit_stats *jits_stats(struct jits *jits)
{
	jits->stats.processes = jits->stats.functions = 0;
	for (size_t i = 0; i < jits->count; i++) {
		const struct jit *jit = jits->jits[i];

		jits->stats.processes += jit->map.fd >= 0 || jit->dump.fd >= 0;
		jits->stats.functions += jit->map.table.count + jit->dump.table.count;
	}
	jits->stats.bytes = jits->bytes;
	return &jits->stats;
}
