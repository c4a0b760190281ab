// SPDX-License-Identifier: Apache-2.0
#include "service/broker_child.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/file.h"
#include "broker/broker.h"
#include "broker/packet.h"
#include "capture/sideband_event.h"
#include "client/event.h"
#include "helper/spawn.h"
#include "service/config.h"
#include "service/confine.h"
#include "service/record.h"
#include "service/secret.h"

/* Helpers, those that were abandoned, sessions of their own. */
enum { PROCESSES_MAX = 64 };

const char broker_name[] = "stacktap-broker";

static struct {
	const char *config_path;
	char *kill_switch;		/* that the configuration named when it was asked for last */
	void *mappings;
	dev_t device;			/* of the sessions that were opened here; 0: none was */
	pid_t processes[PROCESSES_MAX];	/* 0: free */
} state;

static int open_device(const struct packet *request _unused_, union broker_answer *answer)
{
	struct stacktap_info info = { .size = sizeof(info) };
	int fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st))
		state.device = st.st_rdev;
	answer->device.info_error = ioctl(fd, STACKTAP_IOC_INFO, &info) < 0 ? errno : 0;
	answer->device.info = info;
	return fd;
}

static int open_sideband(const struct packet *request, union broker_answer *answer _unused_)
{
	const struct broker_sideband *sideband = request->payload;

	if (sideband->read_format & ~(uint64_t)SIDEBAND_FORMAT_LOST)
		return -EINVAL;
	return sideband_event_open(sideband->cpu, sideband->read_format);
}

/* It counts nothing, and is closed again. Other PMUs may take config1 for a pointer, and are left to the module. */
static int try_event(const struct packet *request, union broker_answer *answer _unused_)
{
	const struct broker_event *event = request->payload;

	switch (event->type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return event_try(event);
	default:
		return -EACCES;
	}
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static int open_kernel(const struct packet *request, union broker_answer *answer _unused_)
{
	static const char *const paths[BROKER_KERNEL_FILES] = {
		[BROKER_SYMBOLS] = "/proc/kallsyms", [BROKER_MODULES] = "/proc/modules",
	};
	const struct broker_kernel *kernel = request->payload;

	return kernel->file < BROKER_KERNEL_FILES ? open_file(paths[kernel->file]) : -EINVAL;
}

static int open_config(const struct packet *request _unused_, union broker_answer *answer _unused_)
{
	return file_open_regular(state.config_path);
}

static const char *path_of(const struct packet *request)
{
	struct broker_path *path = request->payload;

	path->path[sizeof(path->path) - 1] = '\0';
	return path->path;
}

/* The defaults where there is no file. */
static int load_config(struct config *ret_config)
{
	char error[512];
	int r = config_load(state.config_path, ret_config, error, sizeof(error));

	if (r == -ENOENT)
		config_init(ret_config);
	return r == -ENOENT ? 0 : r;
}

/* What the file says that others cannot change, and the environment: not what is asked for. */
static int read_secret(const struct packet *request, union broker_answer *answer _unused_)
{
	const char *path = path_of(request);

	return secret_is_named(state.config_path, path) ? secret_read(path) : -EPERM;
}

/* One that was named stays so: the file may be changed, and in error, before the daemon reads it again. */
static bool is_kill_switch(const char *path)
{
	struct config config;

	if (state.kill_switch && !strcmp(state.kill_switch, path))
		return true;
	if (load_config(&config) < 0)
		return false;
	if (config.kill_switch && !strcmp(config.kill_switch, path)) {
		free(state.kill_switch);
		state.kill_switch = strdup(path);
	}
	config_done(&config);
	return state.kill_switch && !strcmp(state.kill_switch, path);
}

static int look(const struct packet *request, union broker_answer *answer)
{
	const struct broker_path *path = request->payload;
	const char *name = path_of(request);
	struct stat st;

	if (strcmp(name, state.config_path) != 0 && !is_kill_switch(name))
		return -EPERM;
	if (fstatat(AT_FDCWD, name, &st, path->is_link ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return -errno;
	answer->look = (struct broker_look){
		.dev = st.st_dev, .inode = st.st_ino, .size = (uint64_t)st.st_size,
		.mtime_s = st.st_mtim.tv_sec, .mtime_ns = st.st_mtim.tv_nsec,
		.ctime_s = st.st_ctim.tv_sec, .ctime_ns = st.st_ctim.tv_nsec,
	};
	return 0;
}

static int set_mappings(const struct packet *request, union broker_answer *answer _unused_)
{
	struct stacktap_mappings_set set = *(const struct stacktap_mappings_set *)request->payload;
	struct stat st;

	if (set.size != sizeof(set) || set.count > STACKTAP_MAX_MAPPINGS)
		return -EINVAL;
	if (!state.device || fstat(request->fds[0], &st) || !S_ISCHR(st.st_mode) || st.st_rdev != state.device)
		return -EBADF;
	set.mappings = (uintptr_t)state.mappings;
	return ioctl(request->fds[0], STACKTAP_IOC_MAPPINGS_SET, &set) < 0 ? -errno : 0;
}

static pid_t *find_process(pid_t pid)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (state.processes[i] == pid)
			return &state.processes[i];
	return NULL;
}

/* Nobody may have asked for the end of one: who abandoned it can be gone. */
static pid_t *find_free(void)
{
	pid_t *place = find_process(0);

	for (size_t i = 0; i < PROCESSES_MAX && !place; i++)
		if (waitpid(state.processes[i], NULL, WNOHANG)) {
			place = &state.processes[i];
			*place = 0;
		}
	return place;
}

static int keep(pid_t pid, pid_t *place, union broker_answer *answer)
{
	*place = pid;
	answer->process.pid = pid;
	return 0;
}

static int start_helper(const struct packet *request, union broker_answer *answer)
{
	const struct broker_helper *helper = request->payload;
	pid_t pid, *place = find_free();
	int r;

	if (helper->kind >= HELPER_KINDS)
		return -EINVAL;
	if (!place)
		return -EAGAIN;
	r = helper_spawn((enum helper_kind)helper->kind, request->fds[0], &pid);
	return r < 0 ? r : keep(pid, place, answer);
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

/* What the configuration leaves out, by what the file says: not by who asks. */
static char **record_arguments(void)
{
	struct config config;
	char **arguments;

	if (load_config(&config) < 0)
		return NULL;
	arguments = config_record_arguments(&config);
	config_done(&config);
	return arguments;
}

static int start_record(const struct packet *request, union broker_answer *answer)
{
	_cleanup_free_ char **arguments = NULL;
	const struct record_request *record = request->payload;
	pid_t pid, *place = find_free();
	int r;

	if (!is_text(record->pid, sizeof(record->pid)) || !is_text(record->rate, sizeof(record->rate)) ||
	    !is_text(record->period, sizeof(record->period)) || !is_text(record->event, sizeof(record->event)))
		return -EINVAL;
	if (!place)
		return -EAGAIN;
	arguments = record_arguments();
	if (!arguments)
		return -EINVAL;
	r = record_start(record, arguments, NULL, request->fds[0], request->fds[1], &pid);
	return r < 0 ? r : keep(pid, place, answer);
}

static int kill_process(const struct packet *request, union broker_answer *answer _unused_)
{
	const struct broker_process *process = request->payload;

	if (process->pid <= 0 || !find_process(process->pid))
		return -ESRCH;
	return kill(process->pid, SIGKILL) < 0 ? -errno : 0;
}

static int wait_process(const struct packet *request, union broker_answer *answer)
{
	const struct broker_process *process = request->payload;
	pid_t *place = process->pid > 0 ? find_process(process->pid) : NULL, r;
	int status = 0;

	if (!place)
		return -ECHILD;
	r = waitpid(process->pid, &status, WNOHANG);
	if (r)
		*place = 0;
	if (r < 0)
		return -errno;
	answer->status = (struct broker_status){ .has_ended = r != 0, .status = status };
	return 0;
}

static const struct {
	/* the answer's descriptor where it has one, else 0; -errno */
	int (*answer)(const struct packet *request, union broker_answer *answer);
	size_t request_bytes, fd_count, answer_bytes;
	bool has_fd;
} operations[BROKER_OPS] = {
	[BROKER_OPEN_DEVICE] = { open_device, 0, 0, sizeof(struct broker_device), true },
	[BROKER_OPEN_SIDEBAND] = { open_sideband, sizeof(struct broker_sideband), 0, 0, true },
	[BROKER_TRY_EVENT] = { try_event, sizeof(struct broker_event), 0, 0, false },
	[BROKER_OPEN_KERNEL] = { open_kernel, sizeof(struct broker_kernel), 0, 0, true },
	[BROKER_OPEN_CONFIG] = { open_config, 0, 0, 0, true },
	[BROKER_READ_SECRET] = { read_secret, sizeof(struct broker_path), 0, 0, true },
	[BROKER_LOOK] = { look, sizeof(struct broker_path), 0, sizeof(struct broker_look), false },
	[BROKER_SET_MAPPINGS] = { set_mappings, sizeof(struct stacktap_mappings_set), 1, 0, false },
	[BROKER_START_HELPER] = { start_helper, sizeof(struct broker_helper), 1, sizeof(struct broker_process), false },
	[BROKER_START_RECORD] = { start_record, sizeof(struct record_request), 2, sizeof(struct broker_process), false },
	[BROKER_KILL] = { kill_process, sizeof(struct broker_process), 0, 0, false },
	[BROKER_WAIT] = { wait_process, sizeof(struct broker_process), 0, sizeof(struct broker_status), false },
};

static int reply(uint32_t op, int result, union broker_answer *answer)
{
	const bool has_fd = result >= 0 && op < BROKER_OPS && operations[op].has_fd;
	struct packet packet = {
		.header = { .op = op, .result = min_of(result, 0) }, .payload = answer,
		.bytes = result < 0 ? 0 : operations[op].answer_bytes,
		.fds = { result }, .fd_count = has_fd,
	};
	int r = packet_send(BROKER_SOCKET, &packet);

	packet_close(&packet);
	return r;
}

static void serve(void)
{
	union broker_request payload;

	for (;;) {
		struct packet request = { .payload = &payload, .bytes = sizeof(payload) };
		union broker_answer answer = { 0 };
		int r = packet_receive(BROKER_SOCKET, &request);
		const uint32_t op = request.header.op;

		if (r < 0)
			return;
		if (op >= BROKER_OPS || !operations[op].answer || request.bytes != operations[op].request_bytes ||
		    request.fd_count != operations[op].fd_count)
			r = -EINVAL;
		else
			r = operations[op].answer(&request, &answer);
		packet_close(&request);
		if (reply(op, r, &answer) < 0)
			return;
	}
}

static _noreturn_ void be_broker(const char *config_path)
{
	struct broker_hello hello = { 0 };
	const size_t bytes = STACKTAP_MAX_MAPPINGS * sizeof(struct stacktap_mapping);
	bool is_filtered;

	prctl(PR_SET_NAME, broker_name);
	/* inherited as ignored, it would let go of numbers that are signalled here */
	signal(SIGCHLD, SIG_DFL);
	state.config_path = config_path;
	state.mappings = mmap(NULL, bytes, PROT_READ, MAP_SHARED, BROKER_MAPPINGS, 0);
	if (state.mappings == MAP_FAILED || confine_broker(&is_filtered) < 0)
		_exit(EXIT_FAILURE);
	hello.is_confined = is_filtered;
	if (packet_send(BROKER_SOCKET, &(struct packet){ .header = { .op = BROKER_HELLO }, .payload = &hello,
							 .bytes = sizeof(hello) }) < 0)
		_exit(EXIT_FAILURE);
	serve();
	/* nobody is there any more who could ask for it, and what hangs is not waited for */
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (state.processes[i])
			kill(state.processes[i], SIGKILL);
	_exit(EXIT_SUCCESS);
}

/* glibc calls constructors with main()'s arguments. */
static void __attribute__((constructor)) be_broker_if_named(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[0], broker_name))
		be_broker(argv[1]);
}
