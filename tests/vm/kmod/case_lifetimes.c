// SPDX-License-Identifier: Apache-2.0
/* Who holds a session: fds that are passed, inherited, executed over and outlived. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

enum {
	RING_BYTES = 65536,
	IDS = 200,
	HELD = 40,		/* sessions at a time */
};

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

static int session_begin(struct client *client)
{
	int err = client_open(client);

	if (!err)
		err = client_add_rings(client, RING_BYTES);
	if (!err)
		err = client_set_sources(client, &clock_997, 1);
	return err ? err : client_start(client);
}

static void visit_state(const void *attrs, size_t size, void *arg)
{
	const void *session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);

	if (session)
		*(int *)arg = attr_u8(session, size, STACKTAP_A_STATE);
}

/* enum stacktap_state, or -errno. */
static int session_state(uint64_t id)
{
	struct message message;
	struct wire wire;
	int err, state = 0;

	err = wire_open(&wire);
	if (err)
		return err;
	message_begin(&wire, &message, STACKTAP_CMD_GET_SESSION, 0);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, id);
	err = wire_call(&wire, &message, visit_state, &state);
	wire_close(&wire);
	return err ? err : state;
}

static bool runs(uint64_t id)
{
	return session_state(id) == STACKTAP_STATE_RUNNING;
}

/* Ids count up, whatever was freed in between, and those of the dead name nobody. */
static void check_ids(void)
{
	unsigned int i, wrong = 0, risen = 0;
	uint64_t ids[IDS], last = 0;
	int fds[HELD];

	for (i = 0; i < HELD; i++)
		fds[i] = -1;
	for (i = 0; i < IDS; i++) {
		struct stacktap_info info = { .size = sizeof(info) };
		int *fd = &fds[i * 7 % HELD];

		if (*fd >= 0)
			close(*fd);
		*fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		if (ioctl(*fd, STACKTAP_IOC_INFO, &info))
			wrong++;
		ids[i] = info.session_id;
		wrong += ids[i] <= last;
		last = ids[i];
	}
	tap(!wrong, "ids only rise, %u did not", wrong);
	for (i = 0; i < HELD; i++)
		close(fds[i]);
	module_wait_idle();
	for (i = 0, wrong = 0; i < IDS; i++)
		wrong += session_state(ids[i]) != -ESRCH;
	tap(!wrong, "those of the dead name nobody: ESRCH, but for %u", wrong);
	for (i = 0; i < HELD; i++) {
		struct stacktap_info info = { .size = sizeof(info) };
		int fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);

		risen += !ioctl(fd, STACKTAP_IOC_INFO, &info) && info.session_id > last;
		last = info.session_id;
		close(fd);
	}
	tap(risen == HELD, "nor are they given to anybody again");
}

static bool send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = "", byte = 0;
	struct iovec iovec = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1;
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iovec = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Who got the fd from somebody else: maps a ring by offsets it was told, sees it fill, ends it. */
static int use_foreign(int socket, const struct ring *ring, uint64_t id)
{
	struct stacktap_info info = { .size = sizeof(info) };
	struct stacktap_producer_page *producer;
	struct message message;
	struct wire wire;
	uint64_t head;
	unsigned int i;
	int fd = receive_fd(socket);

	if (fd < 0 || ioctl(fd, STACKTAP_IOC_INFO, &info) || info.session_id != id)
		return 1;
	producer = mmap(NULL, info.page_size + 2 * RING_BYTES, PROT_READ, MAP_SHARED, fd,
			ring->producer_offset);
	if (producer == MAP_FAILED)
		return 2;
	head = __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE);
	for (i = 0; i < 600 && __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE) == head; i++)
		load_burn(20);
	if (i == 600)
		return 3;
	if (wire_open(&wire))
		return 4;
	message_begin(&wire, &message, STACKTAP_CMD_STOP, 0);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, id);
	return wire_call(&wire, &message, NULL, NULL) ? 5 : 0;
}

static void check_passing(void)
{
	struct client client;
	int sockets[2], go[2], status = -1;
	struct ring ring = { 0 };
	uint64_t id = 0;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || pipe2(go, O_CLOEXEC))
		return;
	/* before there is anything that it could inherit */
	child = fork();
	if (!child) {
		if (read(go[0], &id, sizeof(id)) != sizeof(id) ||
		    read(go[0], &ring, sizeof(ring)) != sizeof(ring))
			_exit(9);
		_exit(use_foreign(sockets[1], &ring, id));
	}
	tap(!session_begin(&client) && send_fd(sockets[0], client.fd), "a session's fd is sent");
	id = client.info.session_id;
	ring = client.rings[0];
	client_close(&client);
	tap(runs(id), "it holds the session while nobody has received it");
	if (write(go[1], &id, sizeof(id)) < 0 || write(go[1], &ring, sizeof(ring)) < 0)
		return;
	waitpid(child, &status, 0);
	tap(!status, "who receives it maps the ring, sees it fill and stops the session (%d)",
	    WEXITSTATUS(status));
	tap(module_wait_idle(), "it ends with the receiver");

	tap(!session_begin(&client) && send_fd(sockets[0], client.fd), "another is sent");
	id = client.info.session_id;
	client_close(&client);
	tap(runs(id), "it runs");
	close(sockets[0]);
	close(sockets[1]);
	tap(module_wait_idle(), "it ends with the socket that nobody read");
	close(go[0]);
	close(go[1]);
}

/* A child that has nothing to do but to hold what it inherited, until the pipe is closed. */
static pid_t fork_holder(const struct client *client, bool mapping, int pipes[2])
{
	volatile const char *at = (const char *)client->rings[0].producer;
	pid_t pid;
	char byte;

	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(pipes[1]);
		if (mapping) {
			close(client->fd);
			byte = *at;
		}
		_exit(read(pipes[0], &byte, 1) < 0);
	}
	close(pipes[0]);
	return pid;
}

static void check_inheriting(bool mapping)
{
	const char *what = mapping ? "an inherited mapping" : "an inherited fd";
	struct client client;
	int pipes[2], status = -1;
	pid_t child;
	uint64_t id;

	if (!tap(!session_begin(&client), "a session"))
		return;
	id = client.info.session_id;
	if (mapping)
		madvise(client.rings[0].producer, client.info.page_size + 2 * RING_BYTES,
			MADV_DOFORK);
	child = fork_holder(&client, mapping, pipes);
	client_close(&client);
	usleep(100000);
	tap(runs(id), "%s holds it when the opener has closed it", what);
	close(pipes[1]);
	waitpid(child, &status, 0);
	tap(!status && module_wait_idle(), "it ends with %s", what);
}

/* Start a session and become sleep(1); the pipe ends with the exec. */
static pid_t fork_sleeper(bool keep, uint64_t *ret_id)
{
	struct client client;
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		if (session_begin(&client) ||
		    write(pipes[1], &client.info.session_id, sizeof(*ret_id)) < 0)
			_exit(1);
		if (keep)
			fcntl(client.fd, F_SETFD, 0);
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], ret_id, sizeof(*ret_id)) != sizeof(*ret_id))
		*ret_id = 0;
	/* the end of the pipe */
	if (read(pipes[0], &(char) { 0 }, 1) > 0)
		*ret_id = 0;
	close(pipes[0]);
	return pid;
}

static void check_executing(void)
{
	uint64_t id;
	pid_t pid;

	pid = fork_sleeper(false, &id);
	tap(id && module_wait_idle() && !kill(pid, 0) && waitpid(pid, NULL, WNOHANG) == 0,
	    "exec ends a session whose fd is close-on-exec, mappings or not");
	load_kill(pid);
	pid = fork_sleeper(true, &id);
	usleep(100000);
	tap(id && runs(id), "another fd holds it over exec");
	load_kill(pid);
	tap(module_wait_idle(), "until that process is killed");
}

static void check_outliving(void)
{
	struct client client;
	struct ring *ring = &client.rings[0];
	unsigned int cpu;
	int copy, err;

	if (!tap(!session_begin(&client), "a session"))
		return;
	copy = dup(client.fd);
	close(client.fd);
	tap(runs(client.info.session_id), "a duplicate of its fd holds it");
	close(copy);
	tap(runs(client.info.session_id), "its mappings hold it");
	err = syscall(SYS_delete_module, "stacktap", O_NONBLOCK) ? errno : 0;
	tap(err == EWOULDBLOCK || err == EBUSY, "they hold the module, too: %s", strerror(err));
	/* whoever has the right may still steer it */
	tap(!client_stop(&client) && !client_start(&client) && !client_set_rate(&client, 0, 100),
	    "STOP, START and another rate");
	client_drain(&client);
	tap(!client.malformed && client_samples(&client, 0) > 0, "its rings are read");
	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++)
		if (client.rings[cpu].data)
			munmap(client.rings[cpu].producer, client.info.page_size + 2 * RING_BYTES);
	for (cpu = 1; cpu < CLIENT_MAX_CPUS; cpu++)
		if (client.rings[cpu].data)
			munmap(client.rings[cpu].consumer, client.info.page_size);
	tap(runs(client.info.session_id), "so does a single page of them");
	munmap(ring->consumer, client.info.page_size);
	tap(module_wait_idle() && session_state(client.info.session_id) == -ESRCH,
	    "with that it is gone");
	wire_close(&client.wire);
}

void case_lifetimes(void)
{
	check_ids();
	check_passing();
	check_inheriting(false);
	check_inheriting(true);
	check_executing();
	check_outliving();
	tap(module_is_empty(), "the module holds nothing any more");
}
