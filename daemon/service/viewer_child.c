// SPDX-License-Identifier: Apache-2.0
#include "service/viewer_wire.h"

#include <assert.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/pool.h"
#include "base/sha256.h"
#include "helper/sandbox.h"
#include "view/site.h"

enum { STATUS_NO_MEMORY = 507 };

/* Of what a view is made of; the rest of the address space is for reading it, and for the answer. */
#define VIEW_BYTES ((size_t)192 << 20)

const char viewer_name[] = "stacktap-viewer";

/* By calls that sandbox_enter_viewer() leaves. */
static size_t receive_all(char *text, size_t size)
{
	size_t done = 0;
	ssize_t got;

	while (done < size && (got = read(VIEWER_SOCKET, text + done, size - done)) > 0)
		done += (size_t)got;
	return done;
}

static bool send_all(const void *data, size_t size)
{
	const char *next = data;
	ssize_t sent;

	for (; size; size -= (size_t)sent, next += sent) {
		sent = write(VIEWER_SOCKET, next, size);
		if (sent <= 0)
			return false;
	}
	return true;
}

static const char *next_text(char **at, const char *end)
{
	char *text = *at;

	if (text >= end)
		return NULL;
	*at += strlen(text) + 1;
	return text;
}

static bool answer(const char *name, const char *path, const struct web_request *request)
{
	struct site site = { .path = "/proc/self/fd/4", .name = name };
	struct web_answer answer = { .status = 200 };
	struct viewer_head head = { 0 };
	char *body = NULL;
	size_t size = 0;
	bool is_whole;

	static_assert(VIEWER_INPUT == 4, "it is a part of the path");
	answer.body = open_memstream(&body, &size);
	if (!answer.body)
		return false;
	site_answer(&site, path, request, &answer);
	is_whole = !ferror(answer.body);
	is_whole &= !fclose(answer.body);
	if (!is_whole) {
		static const char text[] = "This needs more memory than is allowed. Ask for a shorter time.\n";

		head.status = STATUS_NO_MEMORY;
		head.size = sizeof(text) - 1;
		return send_all(&head, sizeof(head)) && send_all(text, head.size);
	}
	head.status = answer.status;
	head.size = size;
	snprintf(head.type, sizeof(head.type), "%s", answer.type ?: "");
	snprintf(head.policy, sizeof(head.policy), "%s", answer.policy ?: "");
	snprintf(head.name, sizeof(head.name), "%s", answer.name ?: "");
	return send_all(&head, sizeof(head)) && send_all(body, size);
}

static _noreturn_ void show(void)
{
	static char question[VIEWER_QUESTION_MAX + 1];
	struct web_request request = { .socket = -1 };
	const char *name, *path, *key, *value, *end;
	char *at = question;

	prctl(PR_SET_NAME, viewer_name);
	pool_get(POOL_REPORT)->limit = VIEW_BYTES;
	sha256_prepare();
	sandbox_enter_viewer();
	end = question + receive_all(question, VIEWER_QUESTION_MAX);
	name = next_text(&at, end);
	path = next_text(&at, end);
	while ((key = next_text(&at, end)) && (value = next_text(&at, end)))
		web_request_add(&request, key, value);
	/* nothing is left to be done, and exit handlers of libraries are not among what is allowed here */
	_exit(path && answer(name, path, &request) ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* glibc calls constructors with main()'s arguments: as in helper/serve.c, each program that asks can be one. */
static void __attribute__((constructor)) show_if_viewer(int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], viewer_name))
		show();
}
