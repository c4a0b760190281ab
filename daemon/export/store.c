// SPDX-License-Identifier: Apache-2.0
#include "export/store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "export/journal.h"
#include "export/record.h"
#include "export/store_list.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */
#define STORE_FILES 16u		/* a file is closed at this fraction of the store */
#define STORE_FILE_AGE (3600 * NSEC_PER_SEC)
#define STORE_GRACE_MS (600 * 1000)	/* for a clock that is wrong at start */
#define STORE_READ_TRIES 5u		/* of a file, before it is left alone */

/* One file of a store, oldest first by name. */
struct store_entry {
	uint64_t time;		/* Unix ms, from its name */
	/* of its last message: Unix ms, or for one that this run wrote CLOCK_BOOTTIME ms, which is not set */
	uint64_t newest;
	bool is_own;
	uint64_t size;		/* on disk */
	uint64_t end;		/* of its last whole message, of a spool */
	uint64_t messages, samples;	/* that wait */
};

struct store {
	int directory;
	struct store_options options;	/* directory is not kept */
	struct store_entry *entries;	/* sorted by time; the last is open when fd >= 0 */
	size_t count, capacity;
	int fd;
	uint64_t opened;		/* CLOCK_MONOTONIC */
	uint64_t cursor;		/* in the oldest file: what is before it is taken */
	int reading;			/* the oldest file, -1: not open */
	unsigned int failed_reads;	/* of it, in a row */
	uint64_t since;			/* CLOCK_BOOTTIME ms, of store_open() */
	uint64_t appended;		/* messages that came at the end, of a spool */
	struct store_stats stats;
};

static void make_name(uint64_t time, char *ret_name, size_t size)
{
	snprintf(ret_name, size, "%s", store_name(time).text);
}

static uint64_t now_ms(void)
{
	return clock_read(CLOCK_REALTIME) / NSEC_PER_MSEC;
}

static uint64_t boot_ms(void)
{
	return clock_read(CLOCK_BOOTTIME) / NSEC_PER_MSEC;
}

/* The open file is the newest. */
static bool is_open(const struct store *store, const struct store_entry *entry)
{
	return store->fd >= 0 && entry == &store->entries[store->count - 1];
}

static int entry_add(struct store *store, const struct store_entry *entry)
{
	struct store_entry *entries;
	size_t capacity;

	if (store->count == store->capacity) {
		capacity = store->capacity ? store->capacity * 2 : 64;
		entries = reallocarray(store->entries, capacity, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		store->entries = entries;
		store->capacity = capacity;
	}
	store->entries[store->count++] = *entry;
	store->stats.files++;
	store->stats.bytes += entry->size;
	return 0;
}

static void lose_bytes(struct store *store, uint64_t bytes)
{
	store->stats.damaged_messages++;
	store->stats.damaged_bytes += bytes;
}

/* What an earlier run left in a spool's file; a file that cannot be read is none of ours. */
static int scan_messages(struct store *store, struct store_entry *entry)
{
	_cleanup_close_ int fd = store_open_file(store->directory, entry->time);
	struct record record;
	size_t size;
	int err = fd < 0 ? fd : 0;

	while (!err && entry->end < entry->size) {
		err = record_read_head(fd, entry->end, entry->size, &size, &record);
		if (err)
			break;
		entry->end += RECORD_LENGTH + size;
		entry->messages += !record.is_taken;
		entry->samples += record.is_taken ? 0 : record.samples;
	}
	if (err && err != -ENODATA) {
		log_warning("%s of the spool cannot be read: %s", store_name(entry->time).text,
			    strerror(-err));
		return err;
	}
	if (entry->end < entry->size)
		lose_bytes(store, entry->size - entry->end);
	store->stats.messages += entry->messages;
	store->stats.samples += entry->samples;
	store->appended += entry->messages;
	return 0;
}

static int store_scan(struct store *store)
{
	_cleanup_free_ uint64_t *times = NULL;
	const uint64_t now = now_ms();
	struct store_entry entry;
	struct stat st;
	size_t count;
	int err = store_list(store->directory, &times, &count);

	for (size_t i = 0; !err && i < count; i++) {
		entry = (struct store_entry){ .time = times[i] };
		if (fstatat(store->directory, store_name(entry.time).text, &st,
			    AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		entry.size = (uint64_t)st.st_size;
		/* a mark of a taken message is newer than the messages */
		entry.newest = (uint64_t)st.st_mtim.tv_sec * 1000 +
			       (uint64_t)st.st_mtim.tv_nsec / NSEC_PER_MSEC;
		entry.newest = min_of(entry.newest, entry.time + STORE_FILE_AGE / NSEC_PER_MSEC);
		/* one from the future says nothing: its time begins now */
		if (entry.newest > now) {
			entry.newest = store->since;
			entry.is_own = true;
		}
		if (!store->options.is_spool || !scan_messages(store, &entry))
			err = entry_add(store, &entry);
	}
	return err;
}

static void store_roll(struct store *store)
{
	if (store->fd < 0)
		return;
	/* a finished file survives a power cut; the open one may lose its newest messages */
	if (fdatasync(store->fd))
		log_debug("cannot sync a file of the store: %m");
	close(store->fd);
	store->fd = -1;
}

static void forget_oldest(struct store *store)
{
	const struct store_entry oldest = store->entries[0];

	if (store->count == 1)
		store_roll(store);
	if (store->reading >= 0)
		close(store->reading);
	store->reading = -1;
	store->failed_reads = 0;
	store->cursor = 0;
	store->stats.messages -= oldest.messages;
	store->stats.samples -= oldest.samples;
	store->stats.bytes -= oldest.size;
	store->stats.files--;
	store->count--;
	memmove(store->entries, store->entries + 1, store->count * sizeof(*store->entries));
}

/* The oldest file goes, with what waits in it. */
static int remove_oldest(struct store *store)
{
	if (unlinkat(store->directory, store_name(store->entries[0].time).text, 0) &&
	    errno != ENOENT)
		return -errno;
	forget_oldest(store);
	return 0;
}

/* Remove the oldest until @bytes more fit. */
static int make_room(struct store *store, uint64_t bytes)
{
	struct store_entry oldest;
	int err;

	while (store->stats.bytes + bytes > store->options.max_bytes && store->count) {
		oldest = store->entries[0];
		err = remove_oldest(store);
		if (err)
			return err;
		store->stats.full_messages += oldest.messages;
		store->stats.full_samples += oldest.samples;
	}
	return 0;
}

static bool is_too_old(const struct store *store, const struct store_entry *entry)
{
	const uint64_t now = now_ms(), boot = boot_ms(), limit = store->options.max_age_ms;

	if (entry->is_own)
		return boot - entry->newest > limit;
	/* a clock that was set back makes nothing old, and one that is wrong at start may be set yet */
	return boot - store->since > STORE_GRACE_MS && now > entry->newest &&
	       now - entry->newest > limit;
}

void store_expire(struct store *store)
{
	struct store_entry oldest;

	while (store->options.max_age_ms && store->count) {
		oldest = store->entries[0];
		if (!is_too_old(store, &oldest) || remove_oldest(store))
			return;
		store->stats.old_messages += oldest.messages;
		store->stats.old_samples += oldest.samples;
	}
}

static int store_open_next(struct store *store)
{
	struct store_entry entry = { .time = now_ms(), .newest = boot_ms(), .is_own = true };
	int err;

	/* names stay in order even if the clock was set back */
	if (store->count && entry.time <= store->entries[store->count - 1].time)
		entry.time = store->entries[store->count - 1].time + 1;
	store->fd = openat(store->directory, store_name(entry.time).text,
			   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (store->fd < 0)
		return -errno;
	file_sync_directory(store->directory);
	store->opened = clock_monotonic();
	err = entry_add(store, &entry);
	if (err)
		store_roll(store);
	return err;
}

static void sync_above(int directory)
{
	_cleanup_close_ int fd = openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		file_sync_directory(fd);
}

int store_open(const struct store_options *options, struct store **ret_store)
{
	struct store *store = calloc(1, sizeof(*store));
	bool is_new;
	size_t adopted;
	int err;

	if (!store)
		return -ENOMEM;
	store->fd = -1;
	store->reading = -1;
	store->since = boot_ms();
	store->options = *options;
	store->options.directory = NULL;
	is_new = !mkdir(options->directory, 0750);
	if (!is_new && errno != EEXIST) {
		err = -errno;
		free(store);
		return err;
	}
	store->directory = open(options->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory < 0) {
		err = -errno;
		free(store);
		return err;
	}
	if (is_new)
		sync_above(store->directory);
	/* a second owner would remove what the first one counts on */
	if (flock(store->directory, LOCK_EX | LOCK_NB)) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		goto failed;
	}
	adopted = journal_adopt(store->directory, options->recovered_form, make_name);
	if (adopted)
		log_info("recovered %zu journal files of a daemon that was killed, in %s", adopted,
			 options->directory);
	err = store_scan(store);
	if (err)
		goto failed;
	store_expire(store);
	*ret_store = store;
	return 0;
failed:
	store_close(store);
	return err;
}

static bool is_unlinked(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !st.st_nlink;
}

/* Somebody removed the open file, and what waited in it. */
static void lose_newest(struct store *store)
{
	const struct store_entry newest = store->entries[store->count - 1];

	close(steal_fd(&store->fd));
	store->count--;
	if (!store->count)
		store->cursor = 0;
	store->stats.files--;
	store->stats.bytes -= newest.size;
	store->stats.messages -= newest.messages;
	store->stats.samples -= newest.samples;
	store->appended -= newest.messages;
	store->stats.damaged_messages += newest.messages;
	store->stats.damaged_samples += newest.samples;
	store->stats.damaged_bytes += newest.size;
}

int store_append(struct store *store, const uint8_t *data, size_t size, uint64_t samples)
{
	const uint64_t bytes = RECORD_LENGTH + size + RECORD_SEAL;
	uint8_t seal[RECORD_SEAL];
	struct store_entry *entry;
	int err;

	if (bytes > store->options.max_bytes)
		return -EFBIG;
	if (is_unlinked(store->directory))
		return -ESTALE;
	if (store->fd >= 0 && is_unlinked(store->fd))
		lose_newest(store);
	if (store->fd >= 0 &&
	    (store->entries[store->count - 1].size + bytes > store->options.max_bytes / STORE_FILES ||
	     clock_monotonic() - store->opened > STORE_FILE_AGE))
		store_roll(store);
	store_expire(store);
	err = make_room(store, bytes);
	if (err)
		return err;
	if (store->fd < 0) {
		err = store_open_next(store);
		if (err)
			return err;
	}
	record_seal(data, size, samples, seal);
	entry = &store->entries[store->count - 1];
	/* what an earlier one wrote in part and could not take back is overwritten */
	if (lseek(store->fd, (off_t)entry->size, SEEK_SET) < 0)
		return -errno;
	store->stats.bytes -= entry->size;
	err = record_write(store->fd, &entry->size, data, size, seal);
	store->stats.bytes += entry->size;
	if (err)
		return err;
	entry->newest = boot_ms();
	if (store->options.is_spool) {
		entry->end = entry->size;
		entry->messages++;
		entry->samples += samples;
		store->stats.messages++;
		store->stats.samples += samples;
		store->appended++;
	}
	return 0;
}

void store_retract(struct store *store, size_t size, uint64_t samples)
{
	struct store_entry *entry = &store->entries[store->count - 1];
	const uint64_t bytes = RECORD_LENGTH + size + RECORD_SEAL;

	/* where that fails it is sent once more */
	if (store->fd < 0 || ftruncate(store->fd, (off_t)(entry->size - bytes)))
		return;
	entry->size -= bytes;
	entry->end = entry->size;
	entry->messages--;
	entry->samples -= samples;
	store->stats.bytes -= bytes;
	store->stats.messages--;
	store->stats.samples -= samples;
	store->appended--;
}

int store_sync(struct store *store)
{
	return store->fd >= 0 && fdatasync(store->fd) ? -errno : 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	/* an open file that nobody waits for is not worth a name */
	while (store->options.is_spool && store->count && !store->stats.messages &&
	       !remove_oldest(store))
		;
	store_roll(store);
	if (store->reading >= 0)
		close(store->reading);
	close(store->directory);
	free(store->entries);
	free(store);
}

/* Nothing waits in the oldest file any more: true when another one may be behind it. */
static bool leave_file(struct store *store)
{
	struct store_entry *entry = &store->entries[0];

	if (!is_open(store, entry)) {
		/* one that cannot be removed must not keep the others from being sent */
		if (remove_oldest(store))
			forget_oldest(store);
		return true;
	}
	/* less work than a new file, and what was in it need never reach the disk */
	if (entry->size && !ftruncate(store->fd, 0) && lseek(store->fd, 0, SEEK_SET) == 0) {
		store->stats.bytes -= entry->size;
		entry->size = entry->end = 0;
		store->cursor = 0;
	}
	return false;
}

static int reading_fd(struct store *store)
{
	const struct store_entry *entry = &store->entries[0];

	if (is_open(store, entry))
		return store->fd;
	if (store->reading < 0)
		store->reading = store_open_file(store->directory, entry->time);
	return store->reading;
}

/* The byte that says that the message before the cursor is taken. */
static int mark_taken(struct store *store)
{
	const off_t at = (off_t)(store->cursor - RECORD_SEAL + RECORD_STATE);
	const struct store_entry *entry = &store->entries[0];
	_cleanup_close_ int other = -1;
	const uint8_t taken = RECORD_TAKEN;
	int fd = store->fd;

	/* what is read need not be writable */
	if (!is_open(store, entry)) {
		other = openat(store->directory, store_name(entry->time).text,
			       O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
		fd = other;
	}
	return fd >= 0 && pwrite(fd, &taken, sizeof(taken), at) == sizeof(taken) ? 0 : -errno;
}

/*
 * The oldest file could not be read: true when it is done with. What is damaged is so for good; after any other error it
 * is tried again, and then left where it is, for another run.
 */
static bool give_up_file(struct store *store, int err)
{
	struct store_entry *entry = &store->entries[0];
	const bool is_damaged = err == -ENODATA || err == -ENOENT;

	if (!is_damaged && (err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
			    ++store->failed_reads < STORE_READ_TRIES)) {
		if (store->reading >= 0)
			close(steal_fd(&store->reading));
		return false;
	}
	log_warning("%s of the spool cannot be read: %s", store_name(entry->time).text,
		    is_damaged ? "it is damaged" : strerror(-err));
	store->stats.damaged_messages += entry->messages;
	store->stats.damaged_samples += entry->samples;
	store->stats.damaged_bytes += entry->end - store->cursor;
	store->stats.messages -= entry->messages;
	store->stats.samples -= entry->samples;
	entry->messages = entry->samples = 0;
	store->cursor = entry->end;
	if (!is_damaged && !is_open(store, entry))
		forget_oldest(store);
	return true;
}

/*
 * The cursor at the oldest message that waits: 1 and its size with the seal, 0: there is none. Files in
 * which none waits any more go on the way.
 */
static int find_oldest(struct store *store, size_t *ret_size, struct record *ret_record)
{
	struct store_entry *entry;
	int fd, err;

	while (store->count) {
		entry = &store->entries[0];
		if (!entry->messages) {
			if (!leave_file(store))
				return 0;
			continue;
		}
		fd = reading_fd(store);
		err = fd < 0 ? fd : record_read_head(fd, store->cursor, entry->end, ret_size, ret_record);
		if (err) {
			if (!give_up_file(store, err))
				return -EAGAIN;
			continue;
		}
		if (!ret_record->is_taken)
			return 1;
		store->cursor += RECORD_LENGTH + *ret_size;
	}
	return 0;
}

/* The message at the cursor waits no more; returns its samples. */
static uint64_t pass_over(struct store *store, size_t size, const struct record *record)
{
	struct store_entry *entry = &store->entries[0];
	/* a checksum that is wrong may have been the number's */
	const uint64_t samples = min_of(record->samples, entry->samples);

	store->cursor += RECORD_LENGTH + size;
	entry->messages--;
	entry->samples -= samples;
	store->stats.messages--;
	store->stats.samples -= samples;
	/* with the last one the whole file goes; without the mark one is sent once more after a restart */
	if (!entry->messages)
		leave_file(store);
	else if (record->is_sealed && mark_taken(store))
		log_debug("cannot mark a message of the spool: %m");
	return samples;
}

int store_oldest(struct store *store, size_t max_bytes, struct store_message *ret_message)
{
	struct record record;
	uint8_t *data;
	size_t size;
	int ret, err;

	store_expire(store);
	while ((ret = find_oldest(store, &size, &record)) == 1) {
		if (size <= max_bytes) {
			data = malloc(size);
			if (!data)
				return -EAGAIN;
			err = file_pread(reading_fd(store), data, size, store->cursor + RECORD_LENGTH);
			if (err && err != -ENODATA) {
				free(data);
				if (!give_up_file(store, err))
					return -EAGAIN;
				continue;
			}
			if (!err)
				err = record_check(data, size, &record);
			if (!err && (record.is_sealed || record_is_bare(data, size))) {
				*ret_message = (struct store_message){
					.data = data, .size = record.size, .samples = record.samples,
				};
				return 1;
			}
			free(data);
		}
		lose_bytes(store, size);
		store->stats.damaged_samples += pass_over(store, size, &record);
	}
	return ret;
}

void store_take(struct store *store)
{
	struct record record;
	size_t size;

	if (find_oldest(store, &size, &record) == 1)
		pass_over(store, size, &record);
}

uint64_t store_first(const struct store *store)
{
	return store->appended - store->stats.messages;
}

struct store_stats store_stats(const struct store *store)
{
	return store->stats;
}
