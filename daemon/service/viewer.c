// SPDX-License-Identifier: Apache-2.0
#include "service/viewer.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/start.h"
#include "service/viewer_wire.h"

enum {
	STEP_MS = 50,
	CHUNK = 64 << 10,
};

static bool put_text(char *question, size_t *size, const char *text)
{
	const size_t length = strlen(text) + 1;

	if (length > VIEWER_QUESTION_MAX - *size)
		return false;
	memcpy(question + *size, text, length);
	*size += length;
	return true;
}

/* It fits into the socket, so that nobody waits. */
static int send_question(int socket, const struct viewer_job *job)
{
	_cleanup_free_ char *question = malloc(VIEWER_QUESTION_MAX);
	size_t size = 0;
	bool fits;

	if (!question)
		return -ENOMEM;
	fits = put_text(question, &size, job->name) && put_text(question, &size, job->path);
	for (size_t i = 0; fits && i < job->request->count; i++)
		if (strcmp(job->request->pairs[i].name, "token") != 0)
			fits = put_text(question, &size, job->request->pairs[i].name) &&
			       put_text(question, &size, job->request->pairs[i].value);
	if (!fits)
		return -E2BIG;
	if (send(socket, question, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
		return -EIO;
	return shutdown(socket, SHUT_WR) ? -errno : 0;
}

static int start(const struct viewer_job *job, int *ret_socket, pid_t *ret_pid)
{
	char *argv[] = { (char *)(uintptr_t)viewer_name, NULL };
	int sockets[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	err = send_question(sockets[0], job);
	if (!err)
		err = start_program("/proc/self/exe", argv,
				    (const struct start_fd[]){ { sockets[1], VIEWER_SOCKET },
							       { job->input, VIEWER_INPUT } }, 2, ret_pid);
	close(sockets[1]);
	if (err)
		close(sockets[0]);
	else
		*ret_socket = sockets[0];
	return err;
}

/* Until there is something to read. */
static int await(const struct viewer_job *job, int socket)
{
	struct pollfd pollfd = { .fd = socket, .events = POLLIN };

	for (;;) {
		const int ready = poll(&pollfd, 1, STEP_MS);

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -EIO;
		if (clock_monotonic() >= job->deadline)
			return -ETIMEDOUT;
		if (web_is_gone(job->request) || !job->goes_on(job->ctx))
			return -ECANCELED;
	}
}

/* How much has come; less than @size: it has ended. */
static ssize_t receive(const struct viewer_job *job, int socket, void *data, size_t size)
{
	size_t done = 0;
	ssize_t got;
	int err;

	while (done < size) {
		err = await(job, socket);
		if (err)
			return err;
		got = recv(socket, (char *)data + done, size - done, 0);
		if (got < 0)
			return -EIO;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static const char *keep(struct web_answer *answer, size_t *used, char word[VIEWER_WORD_MAX])
{
	char *place = answer->words + *used;

	static_assert(WEB_WORDS_MAX >= 3 * VIEWER_WORD_MAX, "room for all");
	word[VIEWER_WORD_MAX - 1] = '\0';
	if (!word[0])
		return NULL;
	*used += strlen(word) + 1;
	return strcpy(place, word);
}

static int pass_on(const struct viewer_job *job, int socket, struct web_answer *answer)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);
	struct viewer_head head;
	size_t used = 0, part;
	ssize_t got;

	if (!chunk)
		return -ENOMEM;
	got = receive(job, socket, &head, sizeof(head));
	if (got != (ssize_t)sizeof(head))
		return got < 0 ? (int)got : -EIO;
	if (job->is_wanted && !job->is_wanted(job->ctx))
		return -ENOMSG;
	for (uint64_t left = head.size; left; left -= part) {
		part = (size_t)min_of(left, (uint64_t)CHUNK);
		got = receive(job, socket, chunk, part);
		if (got != (ssize_t)part)
			return got < 0 ? (int)got : -EIO;
		/* where it has no room the listener says so */
		if (fwrite(chunk, 1, part, answer->body) != part)
			break;
	}
	answer->status = head.status;
	answer->type = keep(answer, &used, head.type);
	answer->policy = keep(answer, &used, head.policy);
	answer->name = keep(answer, &used, head.name);
	return 0;
}

int viewer_ask(const struct viewer_job *job, struct web_answer *answer)
{
	int socket = -1, status, err;
	pid_t pid = 0;

	err = start(job, &socket, &pid);
	if (err) {
		log_warning("%s cannot be started: %s", viewer_name, strerror(-err));
		return -EIO;
	}
	err = pass_on(job, socket, answer);
	close(socket);
	status = start_end(pid);
	if (err == -EIO)
		log_warning("%s ended by %s", viewer_name,
			    WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "itself");
	return err;
}
