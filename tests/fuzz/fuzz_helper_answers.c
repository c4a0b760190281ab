// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as packets from a helper: of another size, to another question, with descriptors that nobody asked for. No
 * crash, what is taken is what was asked for, who says anything else is ended, and no descriptor stays.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/broker.h"
#include "helper/spawn.h"

#define broker_is_there fuzz_is_there
#define broker_start_helper fuzz_start_helper
#define helper_spawn fuzz_spawn
#define broker_kill fuzz_kill
#define broker_wait fuzz_wait
static bool fuzz_is_there(void);
static int fuzz_start_helper(uint32_t kind, int socket, pid_t *ret_pid);
static int fuzz_spawn(enum helper_kind kind, int socket, pid_t *ret_pid);
static void fuzz_kill(pid_t pid);
static pid_t fuzz_wait(pid_t pid, int *ret_status);
#include "helper/helper.c"

#include "fds.h"
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PID = 7, PACKET_MAX = 4096 };

static bool is_killed;

static bool fuzz_is_there(void)
{
	return false;
}

static int fuzz_start_helper(uint32_t kind _unused_, int socket _unused_, pid_t *ret_pid _unused_)
{
	abort();
}

static int fuzz_spawn(enum helper_kind kind _unused_, int socket _unused_, pid_t *ret_pid _unused_)
{
	abort();
}

static void fuzz_kill(pid_t pid)
{
	if (pid != PID)
		abort();
	is_killed = true;
}

static pid_t fuzz_wait(pid_t pid, int *ret_status)
{
	*ret_status = SIGKILL;
	return pid;
}

static void check(const struct helper *helper, const struct helper_call *call, int r)
{
	if (r > 0 || (r < 0 && call->ret_fd >= 0) || (r == -EPIPE) != is_killed || is_killed != !helper->pid)
		abort();
	if (r < 0)
		return;
	if (call->is_text ? call->ret_bytes > call->answer_bytes : call->ret_bytes != call->answer_bytes)
		abort();
	if (call->ret_fd >= 0 ? !call->wants_fd : call->wants_fd && !call->may_lack_fd)
		abort();
	if (call->ret_fd >= 0 && (fcntl(call->ret_fd, F_GETFD) != FD_CLOEXEC || close(call->ret_fd)))
		abort();
}

/* A byte of what is asked, one of the answer's size, and packets: one of its size, one of its descriptors, and it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t answer[256];
	struct helper helper = { .kind = HELPER_OPENER, .pid = PID, .pause_ms = PAUSE_FIRST_MS };
	struct helper_call call = { .op = OPEN_SCAN, .fd = -1, .timeout_ms = 1, .answer = answer, .cancel_fd = -1 };
	struct fds before;
	int sockets[2], r;

	if (size < 2)
		return 0;
	before = fds_free();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		abort();
	helper.socket = sockets[0];
	helper.is_ready = data[0] & 1;
	call.is_text = data[0] & 2;
	call.wants_fd = data[0] & 4;
	call.may_lack_fd = data[0] & 8;
	call.fd = data[0] & 16 ? STDERR_FILENO : -1;
	call.can_cancel = data[0] & 32;
	call.answer_bytes = data[1];
	data += 2;
	size -= 2;
	for (unsigned int i = 0; i < 2 && size >= 2; i++) {
		const size_t bytes = min_of((size_t)data[0], size - 2);

		if (bytes)
			packets_put(sockets[1], data + 2, bytes, data[1] % 4);
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	/* no other one: it has ended by then */
	shutdown(sockets[1], SHUT_WR);
	is_killed = false;
	r = helper_call(&helper, &call);
	/* one that has not even said hello was not asked */
	if (r != -EAGAIN)
		check(&helper, &call, r);
	else if (call.ret_fd >= 0)
		abort();
	if (helper.socket >= 0)
		close(helper.socket);
	close(sockets[1]);
	fds_check(&before);
	return 0;
}
