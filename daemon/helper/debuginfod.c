// SPDX-License-Identifier: Apache-2.0
#include "helper/debuginfod.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/work.h"
#include "helper/cache.h"

enum {
	GRACE_SECONDS = 5,	/* beyond the fetcher's own limit */
	ABSENT_SECONDS = 3600,
	UNREACHABLE_SECONDS = 30,
	NAME_BYTES = CACHE_NAME_BYTES,
};

static const char found[] = ".debug", absent[] = ".absent", partial[] = ".partial";
static const char *const suffixes[] = { found, absent, partial, NULL };

struct debuginfod {
	struct helper *helper;
	char url[FETCH_URL_MAX];
	char path[PATH_MAX - NAME_BYTES];
	int directory;
	uint64_t file_bytes, cache_bytes;
	uint32_t seconds;
	int cancel_fd;		/* -1: none */
	uint64_t ask_again;	/* CLOCK_MONOTONIC ns, not before */
	char detail[256];	/* why */
	struct debuginfod_stats stats;
};

int debuginfod_check_url(const char *url)
{
	static const char *const schemes[] = { "http://", "https://" };

	if (strlen(url) >= FETCH_URL_MAX)
		return -ENAMETOOLONG;
	for (const char *c = url; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (!strncmp(url, schemes[i], strlen(schemes[i])) && url[strlen(schemes[i])])
			return 0;
	return -EINVAL;
}

int debuginfod_new(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod)
{
	struct debuginfod *debuginfod = calloc(1, sizeof(*debuginfod));
	size_t length = strlen(options->url);
	int r = -ENAMETOOLONG;

	if (!debuginfod)
		return -ENOMEM;
	debuginfod->directory = debuginfod->cancel_fd = -1;
	while (length && options->url[length - 1] == '/')
		length--;
	if (length >= sizeof(debuginfod->url) || strlen(options->directory) >= sizeof(debuginfod->path))
		goto fail;
	memcpy(debuginfod->url, options->url, length);
	strcpy(debuginfod->path, options->directory);
	debuginfod->cache_bytes = options->cache_bytes ?: DEBUGINFOD_CACHE_BYTES;
	debuginfod->file_bytes = min_of(options->file_bytes ?: DEBUGINFOD_FILE_BYTES,
					debuginfod->cache_bytes);
	debuginfod->seconds = options->seconds ?: DEBUGINFOD_SECONDS;
	r = cache_make_directory(debuginfod->path);
	if (r < 0)
		goto fail;
	debuginfod->directory = open(debuginfod->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = debuginfod->directory < 0 ? -errno : helper_new(HELPER_FETCHER, &debuginfod->helper);
	if (r < 0)
		goto fail;
	*ret_debuginfod = debuginfod;
	return 0;
fail:
	debuginfod_free(debuginfod);
	return r;
}

void debuginfod_set_cancel(struct debuginfod *debuginfod, int fd)
{
	debuginfod->cancel_fd = fd;
}

void debuginfod_free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	helper_free(debuginfod->helper);
	if (debuginfod->directory >= 0)
		close(debuginfod->directory);
	free(debuginfod);
}

static void name_of(char name[static NAME_BYTES], const char *build_id, const char *suffix)
{
	snprintf(name, NAME_BYTES, "%s%s", build_id, suffix);
}

static bool is_here(struct debuginfod *debuginfod, const char *build_id)
{
	char name[NAME_BYTES];
	struct stat st;

	name_of(name, build_id, found);
	if (fstatat(debuginfod->directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	/* used now */
	utimensat(debuginfod->directory, name, NULL, AT_SYMLINK_NOFOLLOW);
	return true;
}

static bool is_known_absent(const struct debuginfod *debuginfod, const char *build_id)
{
	const int64_t now = (int64_t)(clock_read(CLOCK_REALTIME) / NSEC_PER_SEC);
	char name[NAME_BYTES];
	struct stat st;

	name_of(name, build_id, absent);
	return fstatat(debuginfod->directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec <= now && now - st.st_mtim.tv_sec < ABSENT_SECONDS;
}

static void mark_absent(struct debuginfod *debuginfod, const char *build_id)
{
	char name[NAME_BYTES];
	int fd;

	name_of(name, build_id, absent);
	fd = openat(debuginfod->directory, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	utimensat(debuginfod->directory, name, NULL, AT_SYMLINK_NOFOLLOW);
}

/* What @outcome is called, and an error number for it; counted. */
static int take_outcome(struct debuginfod *debuginfod, uint32_t outcome, const char *detail,
			char ret_note[static DEBUGINFOD_NOTE_MAX])
{
	struct debuginfod_stats *stats = &debuginfod->stats;

	switch (outcome) {
	case FETCH_ABSENT:
		stats->absent++;
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX, "%s does not have its debug file", debuginfod->url);
		return -ENOENT;
	case FETCH_TOO_LARGE:
		stats->too_large++;
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX,
			 "its debug file at %s is larger than the %llu MiB that are allowed",
			 debuginfod->url, (unsigned long long)(debuginfod->file_bytes >> 20));
		return -EFBIG;
	case FETCH_UNREACHABLE:
		stats->unreachable++;
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX, "%s cannot be reached: %s", debuginfod->url, detail);
		return -EHOSTDOWN;
	case FETCH_TIMED_OUT:
		stats->timed_out++;
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX, "%s takes longer than %u seconds: %s",
			 debuginfod->url, debuginfod->seconds, detail);
		return -ETIME;
	default:
		stats->failed++;
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX, "its debug file cannot be fetched from %s: %s",
			 debuginfod->url, detail);
		return -EIO;
	}
}

static int ask(struct debuginfod *debuginfod, const char *build_id, int fd, struct fetch_reply *reply)
{
	struct fetch_reply answer;
	struct fetch_request request = {
		.max_bytes = debuginfod->file_bytes, .limit_seconds = debuginfod->seconds,
	};
	struct helper_call call = {
		.op = FETCH_DEBUG, .request = &request, .request_bytes = sizeof(request), .fd = fd,
		.timeout_ms = (debuginfod->seconds + GRACE_SECONDS) * 1000,
		.can_cancel = debuginfod->cancel_fd >= 0, .cancel_fd = debuginfod->cancel_fd,
		.answer = &answer, .answer_bytes = sizeof(answer),
	};
	int r;

	strcpy(request.url, debuginfod->url);
	snprintf(request.build_id, sizeof(request.build_id), "%s", build_id);
	work_wait(call.timeout_ms * NSEC_PER_MSEC);
	r = helper_call(debuginfod->helper, &call);
	if (r < 0) {
		reply->outcome = r == -ETIMEDOUT ? FETCH_TIMED_OUT : FETCH_FAILED;
		snprintf(reply->detail, sizeof(reply->detail), "the fetcher: %s", strerror(-r));
		return r;
	}
	answer.detail[sizeof(answer.detail) - 1] = '\0';
	reply->outcome = answer.outcome;
	reply->bytes = answer.bytes;
	utf8_copy(reply->detail, sizeof(reply->detail), answer.detail);
	return 0;
}

static int give_name(struct debuginfod *debuginfod, int fd, const char *part, const char *build_id,
		     struct fetch_reply *reply)
{
	char whole[NAME_BYTES];

	name_of(whole, build_id, found);
	if (fdatasync(fd) == 0 &&
	    renameat(debuginfod->directory, part, debuginfod->directory, whole) == 0)
		return 0;
	reply->outcome = FETCH_FAILED;
	snprintf(reply->detail, sizeof(reply->detail), "%.200s: %s", debuginfod->path, strerror(errno));
	return -EIO;
}

/* The file under its name once all of it is there, and at no time a part of it. */
static int fetch(struct debuginfod *debuginfod, const char *build_id, struct fetch_reply *reply)
{
	char part[NAME_BYTES], suffix[32];
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(suffix, sizeof(suffix), ".%d%s", getpid(), partial);
	name_of(part, build_id, suffix);
	cache_make_room(debuginfod->directory, suffixes, debuginfod->file_bytes, debuginfod->cache_bytes);
	fd = openat(debuginfod->directory, part,
		    O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		snprintf(reply->detail, sizeof(reply->detail), "%.200s: %s", debuginfod->path,
			 strerror(errno));
		return -EIO;
	}
	r = ask(debuginfod, build_id, fd, reply);
	if (!r && reply->outcome == FETCH_FOUND)
		r = give_name(debuginfod, fd, part, build_id, reply);
	if (r < 0 || reply->outcome != FETCH_FOUND)
		unlinkat(debuginfod->directory, part, 0);
	return r;
}

void debuginfod_path(const struct debuginfod *debuginfod, const char *build_id,
		     char ret_path[static PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/%s%s", debuginfod->path, build_id, found);
}

int debuginfod_get(struct debuginfod *debuginfod, const char *build_id, char ret_path[static PATH_MAX],
		   char ret_note[static DEBUGINFOD_NOTE_MAX])
{
	struct fetch_reply reply = { .outcome = FETCH_FAILED };
	int r;

	/* it becomes a part of paths */
	if (!build_id[0] || strlen(build_id) > 40 || build_id[strspn(build_id, "0123456789abcdef")]) {
		snprintf(ret_note, DEBUGINFOD_NOTE_MAX, "it has no build-id, by which servers find debug files");
		return -ENOENT;
	}
	debuginfod_path(debuginfod, build_id, ret_path);
	ret_note[0] = '\0';
	if (is_here(debuginfod, build_id)) {
		debuginfod->stats.from_cache++;
		return 0;
	}
	if (is_known_absent(debuginfod, build_id))
		return take_outcome(debuginfod, FETCH_ABSENT, "", ret_note);
	if (clock_monotonic() < debuginfod->ask_again)
		return take_outcome(debuginfod, FETCH_UNREACHABLE, debuginfod->detail, ret_note);
	r = fetch(debuginfod, build_id, &reply);
	if (r == -ECANCELED)
		return r;
	if (reply.outcome == FETCH_FOUND) {
		debuginfod->stats.fetched++;
		debuginfod->stats.bytes += reply.bytes;
		return 0;
	}
	if (reply.outcome == FETCH_ABSENT)
		mark_absent(debuginfod, build_id);
	if (reply.outcome == FETCH_UNREACHABLE) {
		debuginfod->ask_again = clock_monotonic() + UNREACHABLE_SECONDS * NSEC_PER_SEC;
		strcpy(debuginfod->detail, reply.detail);
	}
	return take_outcome(debuginfod, reply.outcome, reply.detail, ret_note);
}

void debuginfod_forget(struct debuginfod *debuginfod, const char *build_id)
{
	char name[NAME_BYTES];

	name_of(name, build_id, found);
	unlinkat(debuginfod->directory, name, 0);
	mark_absent(debuginfod, build_id);
}

const struct debuginfod_stats *debuginfod_stats(const struct debuginfod *debuginfod)
{
	return &debuginfod->stats;
}

void debuginfod_helper_stats(struct debuginfod *debuginfod, struct helper_stats *ret_stats)
{
	helper_stats(debuginfod->helper, ret_stats);
}
