// SPDX-License-Identifier: Apache-2.0
#include "export/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/chain.h"
#include "export/record.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */
#define DIRECTORY_MODE 0750
#define JOURNAL_PREFIX "journal-"
#define JOURNAL_SUFFIX ".otlp"
#define JOURNAL_TIME_LIMIT 10000000000000ULL	/* Unix ms: 13 digits */
#define WINDOWS_MAX 16u		/* on their way at once */
#define NAME_TRIES 1000u

struct journal_window {
	uint64_t number;
	uint64_t time;		/* Unix ms, of its file's name */
	uint64_t size;
	int fd;
};

struct journal {
	pthread_mutex_t lock;
	uint64_t max_bytes;
	int directory;			/* -1: none */
	_Atomic bool is_open;		/* there is one */
	uint64_t done;			/* windows up to this one */
	struct journal_window windows[WINDOWS_MAX];
	size_t count;
	struct journal_stats stats;
};

static void journal_name(uint64_t time, char *ret_name, size_t size)
{
	snprintf(ret_name, size, JOURNAL_PREFIX "%013llu" JOURNAL_SUFFIX, (unsigned long long)time);
}

static bool journal_parse(const char *text, uint64_t *ret_time)
{
	const char *digits = text + strlen(JOURNAL_PREFIX);
	char name[48], *end;

	if (strncmp(text, JOURNAL_PREFIX, strlen(JOURNAL_PREFIX)) || *digits < '0' || *digits > '9')
		return false;
	*ret_time = strtoull(digits, &end, 10);
	journal_name(*ret_time, name, sizeof(name));
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

static void close_all(struct journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		close(journal->windows[i].fd);
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

bool journal_is_open(const struct journal *journal)
{
	return atomic_load_explicit(&journal->is_open, memory_order_relaxed);
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
		bytes += journal->windows[i].size;
	return bytes;
}

static int open_window(struct journal *journal, uint64_t number, bool continues,
		       struct journal_window **ret_window)
{
	struct journal_window *window = &journal->windows[journal->count];
	char name[48];

	for (size_t i = 0; i < journal->count; i++) {
		if (journal->windows[i].number == number) {
			*ret_window = &journal->windows[i];
			return 0;
		}
	}
	if (continues)
		return -ESTALE;
	if (journal->count == WINDOWS_MAX)
		return -EFBIG;
	*window = (struct journal_window){ .number = number,
					   .time = clock_read(CLOCK_REALTIME) / NSEC_PER_MSEC };
	for (unsigned int i = 0; i < NAME_TRIES; i++, window->time++) {
		journal_name(window->time, name, sizeof(name));
		window->fd = openat(journal->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				    FILE_MODE);
		if (window->fd >= 0 || errno != EEXIST)
			break;
	}
	if (window->fd < 0)
		return -errno;
	journal->count++;
	*ret_window = window;
	return 0;
}

static int add(struct journal *journal, uint64_t number, const uint8_t *data, size_t size,
	       uint64_t samples, bool continues)
{
	struct journal_window *window = NULL;
	uint8_t seal[RECORD_SEAL];
	int err;

	if (journal->directory < 0)
		return -ENOTDIR;
	if (number <= journal->done)
		return -EALREADY;
	if (bytes_used(journal) + RECORD_LENGTH + size + RECORD_SEAL > journal->max_bytes)
		return -EFBIG;
	err = open_window(journal, number, continues, &window);
	if (err)
		return err;
	record_seal(data, size, samples, continues, seal);
	return record_write(window->fd, &window->size, data, size, seal);
}

int journal_add(struct journal *journal, uint64_t window, const uint8_t *data, size_t size,
		uint64_t samples, bool continues)
{
	int err;

	pthread_mutex_lock(&journal->lock);
	err = add(journal, window, data, size, samples, continues);
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
	size_t kept = 0;
	char name[48];

	pthread_mutex_lock(&journal->lock);
	journal->done = max_of(journal->done, window);
	for (size_t i = 0; i < journal->count; i++) {
		if (journal->windows[i].number > window) {
			journal->windows[kept++] = journal->windows[i];
			continue;
		}
		journal_name(journal->windows[i].time, name, sizeof(name));
		if (unlinkat(journal->directory, name, 0) && errno != ENOENT)
			log_debug("cannot remove %s: %m", name);
		close(journal->windows[i].fd);
	}
	journal->count = kept;
	pthread_mutex_unlock(&journal->lock);
}

struct journal_stats journal_stats(struct journal *journal)
{
	struct journal_stats stats;

	pthread_mutex_lock(&journal->lock);
	stats = journal->stats;
	pthread_mutex_unlock(&journal->lock);
	return stats;
}

/* The directory's lock is ours: nobody else makes files of these names. */
static bool adopt(int directory, const char *old, uint64_t time,
		  void (*name)(uint64_t time, char *ret_name, size_t size))
{
	struct stat st;
	char new[64];
	int err;

	if (fstatat(directory, old, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	err = chain_join(directory, old);
	if (err) {
		log_warning("%s of a daemon that was killed stays for the next start: its parts cannot be joined: %s",
			    old, strerror(-err));
		return false;
	}
	if (fstatat(directory, old, &st, AT_SYMLINK_NOFOLLOW) || !st.st_size) {
		unlinkat(directory, old, 0);
		return false;
	}
	for (unsigned int i = 0; i < NAME_TRIES; i++) {
		name(time + i, new, sizeof(new));
		if (!fstatat(directory, new, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (errno == ENOENT && !renameat(directory, old, directory, new))
			return true;
		break;
	}
	log_warning("%s of a daemon that was killed cannot be taken over: %m", old);
	return false;
}

size_t journal_adopt(int directory, void (*name)(uint64_t time, char *ret_name, size_t size))
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *dirent;
	size_t count = 0;
	uint64_t time;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((dirent = readdir(dir)))
		if (journal_parse(dirent->d_name, &time))
			count += adopt(directory, dirent->d_name, time, name);
	closedir(dir);
	return count;
}

static int copy_bytes(int from, int to)
{
	uint8_t bytes[65536];
	ssize_t n, written;

	while ((n = read(from, bytes, sizeof(bytes))) > 0) {
		written = write(to, bytes, (size_t)n);
		if (written != n)
			return written < 0 ? -errno : -ENOSPC;
	}
	return n < 0 ? -errno : 0;
}

/* It appears complete, or not at all. */
static int copy_file(int from, int to, const char *name)
{
	static const char unfinished[] = "journal.new";
	_cleanup_close_ int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int out = in < 0 ? -1 : openat(to, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
						       O_NOFOLLOW, FILE_MODE);
	int err = out < 0 ? -errno : copy_bytes(in, out);

	if (!err && renameat(to, unfinished, to, name))
		err = -errno;
	if (err && out >= 0)
		unlinkat(to, unfinished, 0);
	return err;
}

void journal_share(const char *from, const char *to)
{
	_cleanup_close_ int source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), target = -1;
	DIR *dir = source >= 0 ? opendir(from) : NULL;
	struct dirent *dirent;
	uint64_t time;
	int err;

	/* of a daemon that runs they are not ours to read */
	if (!dir || flock(source, LOCK_EX | LOCK_NB))
		goto out;
	while ((dirent = readdir(dir))) {
		if (!journal_parse(dirent->d_name, &time))
			continue;
		if (target < 0 && (!mkdir(to, DIRECTORY_MODE) || errno == EEXIST))
			target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = target < 0 ? -errno : copy_file(source, target, dirent->d_name);
		if (err)
			log_warning("%s of a daemon that was killed cannot be copied to %s: %s; what is sent from there "
				    "lacks it", dirent->d_name, to, strerror(-err));
	}
out:
	if (dir)
		closedir(dir);
}
