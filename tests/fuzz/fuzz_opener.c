// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as questions to the opener, and to the fetcher, which has no network here: each answers or refuses, within
 * a packet, closes what it was lent, and an opener's file is a regular one below the root that it was given.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "helper/fetch.h"
#include "helper/open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/fuzz-opener-XXXXXX";

static void make(const char *name, const char *text)
{
	char path[sizeof(root) + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		abort();
}

static void link_to(const char *name, const char *target)
{
	char path[sizeof(root) + 32];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (symlink(target, path))
		abort();
}

static void at_exit(void)
{
	static const char *const names[] = { "file", "out", "up", "loop", "fifo", "tmp/perf-1.map", "tmp", "" };
	char path[sizeof(root) + 32];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, names[i]);
		if (remove(path))
			errno = 0;
	}
}

static void set_up(void)
{
	char path[sizeof(root) + 32];

	if (!mkdtemp(root))
		abort();
	atexit(at_exit);
	make("file", "text");
	link_to("out", "/file");
	link_to("up", "../../../../etc/passwd");
	link_to("loop", "loop");
	snprintf(path, sizeof(path), "%s/fifo", root);
	if (mkfifo(path, 0600))
		abort();
	snprintf(path, sizeof(path), "%s/tmp", root);
	if (mkdir(path, 0700))
		abort();
	make("tmp/perf-1.map", "1000 10 f\n");
}

static void check(uint32_t op, const struct serve_answer *answer)
{
	char path[PATH_MAX] = "", self[40];
	struct stat st;

	if (answer->result > 0 || answer->bytes > HELPER_BYTES_MAX)
		abort();
	if (answer->fd < 0)
		return;
	if (fstat(answer->fd, &st))
		abort();
	if (op == OPEN_IN) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", answer->fd);
		if (!S_ISREG(st.st_mode) || readlink(self, path, sizeof(path) - 1) < 0 ||
		    strncmp(path, root, strlen(root)) != 0)
			abort();
	}
	close(answer->fd);
}

/* What it would go on with ends where it seems to. */
static void ask_fetcher(struct serve_request *request, struct serve_answer *answer)
{
	const struct fetch_request *wanted = request->payload;

	fetch_answer(request, answer);
	if (!answer->result && (!memchr(wanted->url, '\0', sizeof(wanted->url)) ||
				!memchr(wanted->build_id, '\0', sizeof(wanted->build_id))))
		abort();
}

/* One byte of the operation, one of which process the question is about; the rest is its payload. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		uint32_t op;
		size_t tgid_at;
	} ops[] = {
		{ OPEN_IN, 0 }, { OPEN_PROCESS, offsetof(struct open_file, tgid) },
		{ OPEN_IMAGE, offsetof(struct open_image, tgid) }, { OPEN_LINKS, 0 },
		{ OPEN_SCAN, offsetof(struct open_process, tgid) },
		{ OPEN_PERF_MAP, offsetof(struct open_perf_map, tgid) },
		{ OPEN_CONTEXT, offsetof(struct open_context, tgid) }, { FETCH_DEBUG, 0 }, { PARSE_FACTS, 0 },
		{ OPEN_NAMESPACE, 0 }, { OPEN_TOUCH, offsetof(struct open_touch, tgid) }, { OPEN_PROCESSES, 0 },
	};
	static uint64_t payload[HELPER_BYTES_MAX / 8], answered[HELPER_BYTES_MAX / 8];
	struct serve_request request = { .payload = payload, .fd = -1 };
	struct serve_answer answer = { .payload = (uint8_t *)answered, .fd = -1 };
	uint32_t tgid = (uint32_t)getpid();
	size_t which;

	if (strstr(root, "XXXXXX"))
		set_up();
	if (size < 2)
		return 0;
	which = data[0] % ARRAY_SIZE(ops);
	request.op = ops[which].op;
	request.bytes = (uint32_t)min_of(size - 2, sizeof(payload));
	memset(payload, 0, sizeof(payload));
	memcpy(payload, data + 2, request.bytes);
	if (data[1] % 2 && ops[which].tgid_at && request.bytes >= ops[which].tgid_at + sizeof(tgid))
		memcpy((uint8_t *)payload + ops[which].tgid_at, &tgid, sizeof(tgid));
	if (data[0] < 128)
		request.fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (request.op == FETCH_DEBUG)
		ask_fetcher(&request, &answer);
	else
		open_answer(&request, &answer);
	check(request.op, &answer);
	if (request.fd >= 0)
		close(request.fd);
	return 0;
}
