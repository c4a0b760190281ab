// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as requests to the broker, as a daemon would make them that somebody took over. It has what it works with
 * from the file itself; nothing is started, signalled or opened for perf. No crash, no descriptor stays, no file but
 * those that the configuration names, and no process but those that it started.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

/* what it may do to others, done by this program */
static pid_t fuzz_wait(pid_t pid, int *ret_status, int options);
static int fuzz_kill(pid_t pid, int number);
#define waitpid fuzz_wait
#define kill fuzz_kill
#define helper_spawn fuzz_helper
#define record_start fuzz_record
#define sideband_event_open fuzz_sideband
#define event_try fuzz_event
#include "service/broker_child.c"

#include "fds.h"
#undef waitpid
#undef kill

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIRST_PID = 1000, PIDS = 2 * PROCESSES_MAX };

static char directory[] = "/tmp/fuzz-broker-XXXXXX", config[64], secret[64], off[64];
static bool is_started[PIDS];
static unsigned int started;

static pid_t start(pid_t *ret_pid)
{
	if (started == PIDS)
		return -EAGAIN;
	*ret_pid = FIRST_PID + (pid_t)started;
	is_started[started++] = true;
	return 0;
}

static bool is_ours(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + PIDS && is_started[pid - FIRST_PID];
}

/* Those with an odd number have ended. */
static pid_t fuzz_wait(pid_t pid, int *ret_status, int options)
{
	if (!is_ours(pid) || options != WNOHANG)
		abort();
	if (!(pid % 2))
		return 0;
	is_started[pid - FIRST_PID] = false;
	if (ret_status)
		*ret_status = 0;
	return pid;
}

static int fuzz_kill(pid_t pid, int number)
{
	if (!is_ours(pid) || number != SIGKILL)
		abort();
	return 0;
}

int helper_spawn(enum helper_kind kind, int socket, pid_t *ret_pid)
{
	if (kind >= HELPER_KINDS || fcntl(socket, F_GETFD) < 0)
		abort();
	return start(ret_pid);
}

int record_start(const struct record_request *request, char *const *arguments, const char *program, int output,
		 int complaints, pid_t *ret_pid)
{
	if (!memchr(request->event, '\0', sizeof(request->event)) || !arguments || program ||
	    fcntl(output, F_GETFD) < 0 || fcntl(complaints, F_GETFD) < 0)
		abort();
	return start(ret_pid);
}

int sideband_event_open(uint32_t cpu, uint64_t read_format)
{
	if (cpu != (uint32_t)(int)cpu || read_format & ~(uint64_t)SIDEBAND_FORMAT_LOST)
		return -EINVAL;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int event_try(const struct broker_event *event)
{
	if (event->type == PERF_TYPE_TRACEPOINT || event->type == PERF_TYPE_BREAKPOINT || event->type >= PERF_TYPE_MAX)
		abort();
	return -ENOENT;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		abort();
}

static void at_exit(void)
{
	unlink(config);
	unlink(secret);
	rmdir(directory);
}

static void set_up(void)
{
	char text[256];

	if (!mkdtemp(directory))
		abort();
	atexit(at_exit);
	snprintf(config, sizeof(config), "%s/config", directory);
	snprintf(secret, sizeof(secret), "%s/key", directory);
	snprintf(off, sizeof(off), "%s/off", directory);
	snprintf(text, sizeof(text), "[export]\nendpoint = https://localhost:1\nclient_key = %s\n[fleet]\nkill_switch = %s\n",
		 secret, off);
	write_file(config, text);
	write_file(secret, "secret");
	state.config_path = config;
	state.mappings = (void *)(uintptr_t)4096;
}

/* A descriptor of what was not asked for by a name that the configuration has. */
static void look_at(uint32_t op, const char *path, int result)
{
	if (op == BROKER_READ_SECRET && result >= 0 && strcmp(path, secret) != 0)
		abort();
	if (op == BROKER_LOOK && result != -EPERM && strcmp(path, config) != 0 && strcmp(path, off) != 0)
		abort();
}

static void ask(uint32_t op, const uint8_t *data, size_t size, size_t fd_count)
{
	union broker_request payload;
	union broker_answer answer = { 0 };
	struct packet request = { .payload = &payload, .bytes = operations[op].request_bytes, .fd_count = fd_count };
	int r;

	if (!operations[op].answer || fd_count != operations[op].fd_count)
		return;
	memset(&payload, 0, sizeof(payload));
	memcpy(&payload, data, min_of(size, sizeof(payload)));
	/* two names that it may ask for, which the fuzzer cannot know */
	if ((op == BROKER_READ_SECRET || op == BROKER_LOOK) && size && data[0] < 3)
		strcpy(payload.path.path, data[0] == 0 ? secret : data[0] == 1 ? off : config);
	for (size_t i = 0; i < fd_count; i++) {
		request.fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (request.fds[i] < 0)
			abort();
	}
	r = operations[op].answer(&request, &answer);
	look_at(op, payload.path.path, r);
	if (operations[op].has_fd ? r >= 0 && fcntl(r, F_GETFD) < 0 : r > 0)
		abort();
	if (operations[op].has_fd && r >= 0)
		close(r);
	packet_close(&request);
}

/* Requests: a byte of which, one of how much follows and how many descriptors come with it, and that. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fds before;

	if (!config[0])
		set_up();
	memset(state.processes, 0, sizeof(state.processes));
	memset(is_started, 0, sizeof(is_started));
	started = 0;
	before = fds_free();
	while (size >= 2) {
		size_t bytes = min_of((size_t)(data[1] & 0x3f) * 16, size - 2);
		uint32_t op = data[0] % BROKER_OPS;

		/* there is no such module, or it is the tests' guest that has one */
		if (op != BROKER_OPEN_DEVICE)
			ask(op, data + 2, bytes, data[1] >> 6);
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	fds_check(&before);
	return 0;
}
