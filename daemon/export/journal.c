// SPDX-License-Identifier: Apache-2.0
#include "export/journal.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/journal_record.h"
#include "export/recover.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */
#define JOURNAL_PREFIX "journal-"
#define JOURNAL_SUFFIX ".bin"
#define OLD_SUFFIX ".otlp"	/* of versions whose journal was OTLP */
#define PARTIAL "journal.partial"
#define JOURNAL_TIME_LIMIT 10000000000000ULL	/* Unix ms: 13 digits */
#define FILES_MAX 16u		/* whose windows are on their way */
#define FILE_BYTES ((uint64_t)4 << 20)
#define FILE_SHARE 4u		/* of the journal's bytes, if those are few */
#define NAME_TRIES 1000u

struct journal_file {
	uint64_t time;		/* Unix ms, of its name */
	uint64_t size;
	uint64_t first, last;	/* windows in it */
	uint64_t done;		/* as it says */
	uint32_t sum;		/* CRC of its bytes so far */
	int fd;
	bool is_broken;		/* there is something at its end that could not be taken back */
};

struct journal {
	pthread_mutex_t lock;
	uint64_t max_bytes;
	int directory;			/* -1: none */
	_Atomic bool is_open;		/* there is one */
	uint64_t done;			/* windows up to this one */
	struct journal_file files[FILES_MAX];
	size_t count;			/* cuts go to the last one */
	struct journal_stats stats;
};

/* What stores found when they were opened. */
static struct {
	_Atomic uint64_t samples, damaged_bytes, foreign_files;
} left;

static void journal_name(uint64_t time, const char *suffix, char *ret_name, size_t size)
{
	snprintf(ret_name, size, JOURNAL_PREFIX "%013llu%s", (unsigned long long)time, suffix);
}

bool journal_parse(const char *text, uint64_t *ret_time, bool *ret_is_old)
{
	const char *digits = text + strlen(JOURNAL_PREFIX);
	char name[48], *end;

	if (strncmp(text, JOURNAL_PREFIX, strlen(JOURNAL_PREFIX)) || *digits < '0' || *digits > '9')
		return false;
	*ret_time = strtoull(digits, &end, 10);
	*ret_is_old = !strcmp(end, OLD_SUFFIX);
	journal_name(*ret_time, *ret_is_old ? OLD_SUFFIX : JOURNAL_SUFFIX, name, sizeof(name));
	return *ret_time < JOURNAL_TIME_LIMIT && !strcmp(name, text);
}

int journal_new(uint64_t max_bytes, struct journal **ret_journal)
{
	struct journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return -ENOMEM;
	pthread_mutex_init(&journal->lock, NULL);
	journal->max_bytes = max_bytes;
	journal->directory = -1;
	*ret_journal = journal;
	return 0;
}

static void remove_file(struct journal *journal, size_t i)
{
	char name[48];

	journal_name(journal->files[i].time, JOURNAL_SUFFIX, name, sizeof(name));
	if (unlinkat(journal->directory, name, 0) && errno != ENOENT)
		log_debug("cannot remove %s: %m", name);
	close(journal->files[i].fd);
	journal->count--;
	memmove(&journal->files[i], &journal->files[i + 1], (journal->count - i) * sizeof(journal->files[0]));
}

/* Those that nothing needs any more, of the first @count. */
static void remove_done(struct journal *journal, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (journal->files[i].last <= journal->done)
			remove_file(journal, i);
}

static void close_all(struct journal *journal)
{
	remove_done(journal, journal->count);
	for (size_t i = 0; i < journal->count; i++)
		close(journal->files[i].fd);
	journal->count = 0;
	if (journal->directory >= 0)
		close(steal_fd(&journal->directory));
}

int journal_open(struct journal *journal, const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	pthread_mutex_lock(&journal->lock);
	close_all(journal);
	journal->directory = fd;
	atomic_store_explicit(&journal->is_open, true, memory_order_relaxed);
	pthread_mutex_unlock(&journal->lock);
	return 0;
}

uint64_t journal_room(const struct journal *journal)
{
	return atomic_load_explicit(&journal->is_open, memory_order_relaxed) ?
		       min_of(journal->max_bytes / FILE_SHARE, FILE_BYTES) : 0;
}

void journal_free(struct journal *journal)
{
	if (!journal)
		return;
	close_all(journal);
	pthread_mutex_destroy(&journal->lock);
	free(journal);
}

static uint64_t bytes_used(const struct journal *journal)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < journal->count; i++)
		bytes += journal->files[i].size;
	return bytes;
}

static int open_file(struct journal *journal, uint64_t window)
{
	struct journal_file *file = &journal->files[journal->count];
	char name[48];

	if (journal->count == FILES_MAX)
		return -EFBIG;
	*file = (struct journal_file){ .first = window, .last = window,
				       .time = clock_read(CLOCK_REALTIME) / NSEC_PER_MSEC };
	for (unsigned int i = 0; i < NAME_TRIES; i++, file->time++) {
		journal_name(file->time, JOURNAL_SUFFIX, name, sizeof(name));
		file->fd = openat(journal->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	if (file->fd < 0)
		return -errno;
	journal->count++;
	return 0;
}

/* By one write, that of the head with the first. What does not go out whole is taken back. */
static int write_record(struct journal_file *file, enum journal_kind kind, const uint8_t *data, size_t size)
{
	uint8_t head[JOURNAL_HEAD], frame[JOURNAL_FRAME];
	const size_t head_size = file->size ? 0 : sizeof(head);
	const size_t all = head_size + sizeof(frame) + size;
	uint32_t sum = file->sum;
	struct iovec parts[] = {
		{ .iov_base = head, .iov_len = head_size },
		{ .iov_base = frame, .iov_len = sizeof(frame) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = size },
	};
	ssize_t written;
	int err;

	if (!size || size > JOURNAL_RECORD_MAX)
		return -EMSGSIZE;
	if (head_size)
		journal_head(head, &sum);
	journal_frame(kind, data, size, &sum, frame);
	do {
		written = writev(file->fd, parts, ARRAY_SIZE(parts));
	} while (written < 0 && errno == EINTR);
	if (written == (ssize_t)all) {
		file->size += all;
		file->sum = sum;
		return 0;
	}
	err = written < 0 ? -errno : -ENOSPC;
	file->is_broken = ftruncate(file->fd, (off_t)file->size) || lseek(file->fd, (off_t)file->size, SEEK_SET) < 0;
	return err;
}

/* -ENOSPC and others: it does not say so. */
static int tell_done(struct journal_file *file, uint64_t window)
{
	const uint64_t number = htole64(window);
	int err = file->is_broken ? -EIO : write_record(file, JOURNAL_DONE, (const uint8_t *)&number, sizeof(number));

	if (!err)
		file->done = window;
	return err;
}

static int add(struct journal *journal, uint64_t window, const uint8_t *data, size_t size, bool begins)
{
	struct journal_file *file;
	int err;

	if (journal->directory < 0)
		return -ENOTDIR;
	if (begins && window <= journal->done)
		return -EALREADY;
	if (begins)
		remove_done(journal, journal->count);
	if (bytes_used(journal) + (begins ? JOURNAL_HEAD : 0) + JOURNAL_FRAME + size > journal->max_bytes)
		return -EFBIG;
	if (!begins && (!journal->count || journal->files[journal->count - 1].is_broken))
		return -ESTALE;
	err = begins ? open_file(journal, window) : 0;
	if (err)
		return err;
	file = &journal->files[journal->count - 1];
	file->last = max_of(file->last, window);
	err = write_record(file, JOURNAL_CUT, data, size);
	if (err && begins)
		remove_file(journal, journal->count - 1);
	/* it comes late: the file was not told of its window */
	if (!err && window <= journal->done && file->done < window)
		tell_done(file, journal->done);
	return err;
}

int journal_add(struct journal *journal, uint64_t window, const uint8_t *data, size_t size,
		uint64_t samples, bool begins)
{
	int err;

	pthread_mutex_lock(&journal->lock);
	err = add(journal, window, data, size, begins);
	if (!err) {
		journal->stats.parts++;
		journal->stats.samples += samples;
		journal->stats.bytes += size;
	} else if (err != -EALREADY) {
		journal->stats.refused++;
	}
	pthread_mutex_unlock(&journal->lock);
	return err;
}

void journal_done(struct journal *journal, uint64_t window)
{
	struct journal_file *file;

	pthread_mutex_lock(&journal->lock);
	journal->done = max_of(journal->done, window);
	/* the last one is gone on with */
	if (journal->count)
		remove_done(journal, journal->count - 1);
	for (size_t i = journal->count; i-- > 0;) {
		file = &journal->files[i];
		if (min_of(window, file->last) < file->first || min_of(window, file->last) <= file->done)
			continue;
		/* better none than one that has its windows sent again */
		if (tell_done(file, window) && file->last <= window)
			remove_file(journal, i);
	}
	pthread_mutex_unlock(&journal->lock);
}

struct journal_stats journal_stats(struct journal *journal)
{
	struct journal_stats stats;

	pthread_mutex_lock(&journal->lock);
	stats = journal->stats;
	pthread_mutex_unlock(&journal->lock);
	stats.recovered_samples = atomic_load_explicit(&left.samples, memory_order_relaxed);
	stats.damaged_bytes = atomic_load_explicit(&left.damaged_bytes, memory_order_relaxed);
	stats.foreign_files = atomic_load_explicit(&left.foreign_files, memory_order_relaxed);
	return stats;
}

/* What @recovered tells of is in @partial, under a name of the store's, or there is nothing in it. */
static int name_partial(int directory, int partial, const struct recovered *recovered, uint64_t time,
			void (*name)(uint64_t time, char *ret_name, size_t size))
{
	struct stat st;
	char new[64];

	if (!recovered->samples)
		return unlinkat(directory, PARTIAL, 0) ? -errno : 0;
	/* as whole as what it replaces, after a power cut too */
	if (fdatasync(partial))
		return -errno;
	for (unsigned int i = 0; i < NAME_TRIES; i++) {
		name(time + i, new, sizeof(new));
		if (!fstatat(directory, new, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (errno == ENOENT && !renameat(directory, PARTIAL, directory, new))
			return 0;
		break;
	}
	return -errno;
}

static void tell_left(const char *old, bool is_foreign, const struct recovered *recovered)
{
	atomic_fetch_add_explicit(&left.samples, recovered->samples, memory_order_relaxed);
	atomic_fetch_add_explicit(&left.damaged_bytes, recovered->damaged_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&left.foreign_files, is_foreign, memory_order_relaxed);
	if (is_foreign)
		log_warning("the journal %s, left by a daemon that was killed, is of %s%s and was removed unread, up to one "
			    "window is lost: stop the daemon before upgrading it",
			    old, recovered->version[0] ? "version " : "another version", recovered->version);
	if (recovered->damaged_bytes)
		log_warning("the last %llu bytes of %s of a daemon that was killed are damaged, cut off or too much for "
			    "memory, and lost",
			    (unsigned long long)recovered->damaged_bytes, old);
}

/* The directory's lock is ours: nobody else makes files of these names. */
static bool adopt(int directory, const char *old, uint64_t time, bool is_old, const struct encode_form *form,
		  void (*name)(uint64_t time, char *ret_name, size_t size))
{
	_cleanup_close_ int from = openat(directory, old, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_close_ int to = -1;
	struct recovered recovered = { 0 };
	struct stat st;
	int err = -EPROTO;

	if (from < 0 || fstat(from, &st) || !S_ISREG(st.st_mode))
		return false;
	if (!is_old) {
		to = openat(directory, PARTIAL, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
		err = to < 0 ? -errno : recover(from, to, form, &recovered);
		if (!err)
			err = name_partial(directory, to, &recovered, time, name);
		if (err && to >= 0)
			unlinkat(directory, PARTIAL, 0);
	}
	if (err && err != -EPROTO) {
		log_warning("%s of a daemon that was killed stays for the next start: it cannot be taken over: %s", old,
			    strerror(-err));
		return false;
	}
	tell_left(old, err, &recovered);
	unlinkat(directory, old, 0);
	return recovered.samples;
}

size_t journal_adopt(int directory, const struct encode_form *form,
		     void (*name)(uint64_t time, char *ret_name, size_t size))
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *dirent;
	size_t count = 0;
	uint64_t time;
	bool is_old;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((dirent = readdir(dir)))
		if (journal_parse(dirent->d_name, &time, &is_old))
			count += adopt(directory, dirent->d_name, time, is_old, form, name);
	closedir(dir);
	return count;
}
