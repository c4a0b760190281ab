// SPDX-License-Identifier: Apache-2.0
#include "broker/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/packet.h"

enum {
	HELLO_MS = 20000,	/* a loaded host takes long to start a program */
	ABOVE = 16,		/* the numbers that it gets */
	END_MS = 1000,		/* after its socket, and once more when it was killed */
	END_STEP_MS = 5,
};

#define MAPPINGS_BYTES (STACKTAP_MAX_MAPPINGS * sizeof(struct stacktap_mapping))

/* One in a process, as rights are. */
static struct {
	pthread_mutex_t lock;	/* of the socket and the memory */
	int socket;
	pid_t pid;		/* 0: there is none */
	void *mappings;		/* which the broker has at BROKER_MAPPINGS */
} broker = { .lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1 };

struct call {
	enum broker_op op;
	const void *request;
	size_t request_bytes;
	int fds[BROKER_FDS_MAX];
	size_t fd_count;
	void *answer;
	size_t answer_bytes;
	bool wants_fd;
};

/* Of the environment what the processes that it starts may need, which then are given less each; TLS files, by name. */
static const char *const passed_on[] = {
	"LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "PATH=",
	"OTEL_SERVICE_NAME=", "OTEL_RESOURCE_ATTRIBUTES=", "http_proxy=", "https_proxy=", "HTTPS_PROXY=", "all_proxy=", "ALL_PROXY=", "no_proxy=", "NO_PROXY=",
	"OTEL_EXPORTER_OTLP_CERTIFICATE=", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=", "OTEL_EXPORTER_OTLP_CLIENT_KEY=",
	"OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE=", "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE=",
	"OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY=", "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE=",
	"OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE=", "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY=",
};

static bool is_passed_on(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
		if (!strncmp(variable, passed_on[i], strlen(passed_on[i])))
			return true;
	return false;
}

/* Signals to our group or our control group are for us: it ends when its socket does. */
static int spawn(const char *name, const char *config_path, int socket, int mappings)
{
	char *argv[] = { (char *)(uintptr_t)name, (char *)(uintptr_t)config_path, NULL };
	char *environment[ARRAY_SIZE(passed_on) + 1] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	size_t count = 0;
	sigset_t all;
	int r;

	for (char **variable = environ; *variable && count + 1 < ARRAY_SIZE(environment); variable++)
		if (is_passed_on(*variable))
			environment[count++] = *variable;
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawn_file_actions_init(&actions);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ?:
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ?:
	    posix_spawn_file_actions_adddup2(&actions, socket, BROKER_SOCKET) ?:
	    posix_spawn_file_actions_adddup2(&actions, mappings, BROKER_MAPPINGS) ?:
	    posix_spawn_file_actions_addclosefrom_np(&actions, BROKER_MAPPINGS + 1) ?:
	    posix_spawn(&broker.pid, "/proc/self/exe", &actions, &attributes, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (r)
		broker.pid = 0;
	return -r;
}

static int await_hello(const char *name)
{
	struct pollfd pollfd = { .fd = broker.socket, .events = POLLIN };
	union broker_answer answer = { 0 };
	struct packet packet = { .payload = &answer, .bytes = sizeof(answer) };
	int r = poll(&pollfd, 1, HELLO_MS);

	if (r <= 0)
		return r ? -errno : -ETIMEDOUT;
	r = packet_receive(broker.socket, &packet);
	if (r < 0)
		return r;
	packet_close(&packet);
	if (packet.header.op != BROKER_HELLO || packet.bytes != sizeof(answer.hello))
		return -EBADMSG;
	if (!answer.hello.is_confined)
		log_warning("%s: this kernel does not filter system calls", name);
	return 0;
}

static int make_mappings(int *ret_fd)
{
	_cleanup_close_ int fd = memfd_create("stacktap-mappings", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, MAPPINGS_BYTES) < 0)
		return -errno;
	broker.mappings = mmap(NULL, MAPPINGS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (broker.mappings == MAP_FAILED) {
		broker.mappings = NULL;
		return -errno;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int broker_begin(const char *name, const char *config_path)
{
	_cleanup_close_ int theirs = -1, mappings = -1, memory = -1;
	int sockets[2], r = make_mappings(&memory);

	if (!r && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		r = -errno;
	if (!r) {
		broker.socket = sockets[0];
		/* out of the way of the numbers that they get */
		theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, ABOVE);
		mappings = fcntl(memory, F_DUPFD_CLOEXEC, ABOVE);
		close(sockets[1]);
		r = theirs < 0 || mappings < 0 ? -errno : spawn(name, config_path, theirs, mappings);
	}
	if (!r) {
		close(steal_fd(&theirs));
		r = await_hello(name);
	}
	if (r < 0)
		broker_end();
	return r;
}

static bool has_ended(void)
{
	const struct timespec step = { .tv_nsec = END_STEP_MS * (long)NSEC_PER_MSEC };

	for (int ms = 0; ms < END_MS; ms += END_STEP_MS) {
		const pid_t pid = waitpid(broker.pid, NULL, WNOHANG);

		if (pid == broker.pid || (pid < 0 && errno != EINTR))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

/* Killed by who has the right still; to others it is left behind. */
void broker_end(void)
{
	if (broker.socket >= 0)
		close(broker.socket);
	broker.socket = -1;
	if (broker.pid && !has_ended() && kill(broker.pid, SIGKILL) == 0)
		has_ended();
	broker.pid = 0;
	if (broker.mappings)
		munmap(broker.mappings, MAPPINGS_BYTES);
	broker.mappings = NULL;
}

bool broker_is_there(void)
{
	return broker.pid;
}

pid_t broker_pid(void)
{
	return broker.pid;
}

int broker_socket(void)
{
	return broker.socket;
}

static int exchange(const struct call *call, int *ret_fd)
{
	struct packet packet = {
		.header = { .op = call->op },
		.payload = (void *)(uintptr_t)call->request, .bytes = call->request_bytes,
		.fds = { call->fds[0], call->fds[1] }, .fd_count = call->fd_count,
	};
	int r = packet_send(broker.socket, &packet);

	if (r < 0)
		return r;
	packet = (struct packet){ .payload = call->answer, .bytes = call->answer_bytes };
	r = packet_receive(broker.socket, &packet);
	if (r < 0)
		return r;
	r = packet.header.result;
	if (packet.header.op != call->op || r > 0 ||
	    (!r && (packet.bytes != call->answer_bytes || packet.fd_count != call->wants_fd)))
		r = -EBADMSG;
	if (!r && call->wants_fd)
		*ret_fd = packet.fds[0];
	else
		packet_close(&packet);
	return r;
}

/* 0, or -errno; the descriptor where one is wanted. */
static int ask(const struct call *call)
{
	int fd = 0, r;

	pthread_mutex_lock(&broker.lock);
	r = exchange(call, &fd);
	pthread_mutex_unlock(&broker.lock);
	return r < 0 ? r : fd;
}

int broker_open_device(struct stacktap_info *ret_info, int *ret_info_error)
{
	struct broker_device device;
	int fd = ask(&(struct call){ .op = BROKER_OPEN_DEVICE, .answer = &device, .answer_bytes = sizeof(device),
				     .wants_fd = true });

	if (fd < 0)
		return fd;
	*ret_info = device.info;
	*ret_info_error = device.info_error;
	return fd;
}

int broker_open_sideband(uint32_t cpu, uint64_t read_format)
{
	const struct broker_sideband request = { .cpu = cpu, .read_format = read_format };

	return ask(&(struct call){ .op = BROKER_OPEN_SIDEBAND, .request = &request, .request_bytes = sizeof(request),
				   .wants_fd = true });
}

int broker_try_event(const struct broker_event *event)
{
	return ask(&(struct call){ .op = BROKER_TRY_EVENT, .request = event, .request_bytes = sizeof(*event) });
}

int broker_open_kernel(enum broker_kernel_file file)
{
	const struct broker_kernel request = { .file = file };

	return ask(&(struct call){ .op = BROKER_OPEN_KERNEL, .request = &request, .request_bytes = sizeof(request),
				   .wants_fd = true });
}

int broker_open_config(void)
{
	return ask(&(struct call){ .op = BROKER_OPEN_CONFIG, .wants_fd = true });
}

static int ask_path(enum broker_op op, const char *path, bool is_link, void *answer, size_t answer_bytes, bool wants_fd)
{
	struct broker_path request = { .is_link = is_link };

	if (strlen(path) >= sizeof(request.path))
		return -ENAMETOOLONG;
	strcpy(request.path, path);
	return ask(&(struct call){ .op = op, .request = &request, .request_bytes = sizeof(request), .answer = answer,
				   .answer_bytes = answer_bytes, .wants_fd = wants_fd });
}

int broker_read_secret(const char *path)
{
	return ask_path(BROKER_READ_SECRET, path, false, NULL, 0, true);
}

int broker_set_mappings(int session, const struct stacktap_mappings_set *set)
{
	struct call call = {
		.op = BROKER_SET_MAPPINGS, .request = set, .request_bytes = sizeof(*set),
		.fds = { session }, .fd_count = 1,
	};
	int fd = 0, r;

	if (set->count > STACKTAP_MAX_MAPPINGS)
		return -E2BIG;
	pthread_mutex_lock(&broker.lock);
	memcpy(broker.mappings, (const void *)(uintptr_t)set->mappings, set->count * sizeof(struct stacktap_mapping));
	r = exchange(&call, &fd);
	pthread_mutex_unlock(&broker.lock);
	return r;
}

static int ask_to_start(struct call *call, pid_t *ret_pid)
{
	struct broker_process process;
	int r;

	call->answer = &process;
	call->answer_bytes = sizeof(process);
	r = ask(call);
	if (r < 0)
		return r;
	*ret_pid = process.pid;
	return 0;
}

int broker_start_helper(uint32_t kind, int socket, pid_t *ret_pid)
{
	const struct broker_helper request = { .kind = kind };

	return ask_to_start(&(struct call){ .op = BROKER_START_HELPER, .request = &request,
					    .request_bytes = sizeof(request), .fds = { socket }, .fd_count = 1 }, ret_pid);
}

int broker_start_record(const struct record_request *request, int output, int complaints, pid_t *ret_pid)
{
	return ask_to_start(&(struct call){ .op = BROKER_START_RECORD, .request = request,
					    .request_bytes = sizeof(*request), .fds = { output, complaints },
					    .fd_count = 2 }, ret_pid);
}

/* Directories above it may be closed to us. */
static int look(const char *path, bool is_link, struct stat *ret_stat)
{
	struct broker_look answer;
	int r;

	if (fstatat(AT_FDCWD, path, ret_stat, is_link ? AT_SYMLINK_NOFOLLOW : 0) == 0)
		return 0;
	if (errno != EACCES || !broker_is_there())
		return -errno;
	r = ask_path(BROKER_LOOK, path, is_link, &answer, sizeof(answer), false);
	if (r < 0)
		return r;
	*ret_stat = (struct stat){
		.st_dev = answer.dev, .st_ino = answer.inode, .st_size = (off_t)answer.size,
		.st_mtim = { .tv_sec = answer.mtime_s, .tv_nsec = answer.mtime_ns },
		.st_ctim = { .tv_sec = answer.ctime_s, .tv_nsec = answer.ctime_ns },
	};
	return 0;
}

int broker_stat(const char *path, struct stat *ret_stat)
{
	return look(path, false, ret_stat);
}

int broker_lstat(const char *path, struct stat *ret_stat)
{
	return look(path, true, ret_stat);
}

void broker_kill(pid_t pid)
{
	const struct broker_process request = { .pid = pid };

	if (broker_is_there())
		ask(&(struct call){ .op = BROKER_KILL, .request = &request, .request_bytes = sizeof(request) });
	else
		kill(pid, SIGKILL);
}

pid_t broker_wait(pid_t pid, int *ret_status)
{
	const struct broker_process request = { .pid = pid };
	struct broker_status status;
	int r;

	if (!broker_is_there())
		return waitpid(pid, ret_status, WNOHANG);
	r = ask(&(struct call){ .op = BROKER_WAIT, .request = &request, .request_bytes = sizeof(request),
				.answer = &status, .answer_bytes = sizeof(status) });
	if (r < 0) {
		/* with the broker goes what it started */
		errno = ECHILD;
		return -1;
	}
	*ret_status = status.status;
	return status.has_ended ? pid : 0;
}
