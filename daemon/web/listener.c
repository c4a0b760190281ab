// SPDX-License-Identifier: Apache-2.0
#include "web/listener.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "web/address.h"
#include "web/turns.h"

enum {
	CONNECTIONS_MAX = 16,
	REQUEST_BYTES = 16 << 10,	/* of a connection: the request's head and the answer's */
	SILENCE_S = 10,			/* after which a connection is closed */
	PATIENCE_MS = 1000,		/* the same, where few are left */
	THREADS_SPARE = 4,		/* beyond those that are asked for: one too many would be reset at once */
	TURN_MS = 60000,		/* as is one whose client is never silent and never done */
	HEADER_MAX = 256,
};

struct listener {
	struct MHD_Daemon *daemon;
	struct turns *turns;
	struct listener_options options;
	struct address address;
	struct guard guard;
	struct listener_counts counts;
	char *token, *name, *bare_name;
};

static int socket_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static enum MHD_Result add_pair(void *ctx, enum MHD_ValueKind kind _unused_, const char *name, const char *value)
{
	return web_request_add(ctx, name, value ? value : "") ? MHD_YES : MHD_NO;
}

static ssize_t write_body(void *ctx, const char *data, size_t size)
{
	if (!buffer_append(ctx, data, size))
		return (ssize_t)size;
	errno = ENOBUFS;
	return 0;
}

static void free_body(void *ctx)
{
	if (ctx)
		buffer_free(ctx);
	free(ctx);
}

static void add_headers(struct MHD_Response *response, const struct web_answer *answer)
{
	char text[HEADER_MAX];

	MHD_add_response_header(response, "Content-Type",
				answer->type ? answer->type : "text/plain; charset=utf-8");
	MHD_add_response_header(response, "Content-Security-Policy",
				answer->policy ? answer->policy :
				"default-src 'none'; frame-ancestors 'none'");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	/* the address has the token, and the answer is nobody else's */
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (answer->name) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", answer->name);
		MHD_add_response_header(response, "Content-Disposition", text);
	}
	if (answer->location)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, answer->location);
}

/* Takes @body. */
static enum MHD_Result send_body(struct MHD_Connection *connection, const struct web_answer *answer,
				 struct buffer *body)
{
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		body->size, body->data, free_body, body);
	enum MHD_Result result;

	if (!response) {
		free_body(body);
		return MHD_NO;
	}
	add_headers(response, answer);
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned int status,
				 const char *text)
{
	const struct web_answer answer = { .status = status };
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
						MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, &answer);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_request(struct listener *listener, const char *path,
				      struct MHD_Connection *connection)
{
	struct web_request request = { .socket = socket_of(connection) };
	struct web_answer answer = { .status = MHD_HTTP_OK };
	struct buffer *body;
	bool is_whole;

	atomic_fetch_add(&listener->counts.answered, 1);
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_pair, &request);
	if (request.is_full)
		return send_text(connection, MHD_HTTP_BAD_REQUEST,
				 "The query has too many parameters.\n");
	/* our turn: how long an answer takes is not the client's fault */
	turns_pause(listener->turns, socket_of(connection));
	body = calloc(1, sizeof(*body));
	if (body) {
		buffer_init(body, listener->options.pool);
		answer.body = fopencookie(body, "w",
					  (cookie_io_functions_t){ .write = write_body });
	}
	if (answer.body) {
		listener->options.handler(listener->options.ctx, path, &request, &answer);
		is_whole = !ferror(answer.body);
		is_whole &= !fclose(answer.body);
		turns_read(listener->turns, socket_of(connection));
		if (is_whole)
			return send_body(connection, &answer, body);
	}
	turns_read(listener->turns, socket_of(connection));
	free_body(body);
	atomic_fetch_add(&listener->counts.failed, 1);
	return send_text(connection, MHD_HTTP_INSUFFICIENT_STORAGE,
			 "This needs more memory than is allowed. Ask for a shorter time.\n");
}

static enum MHD_Result count_host(void *ctx, enum MHD_ValueKind kind _unused_, const char *key,
				  const char *value _unused_)
{
	*(unsigned int *)ctx += !strcasecmp(key, MHD_HTTP_HEADER_HOST);
	return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum guard_verdict ask_guard(const struct listener *listener, const char *path,
				    struct MHD_Connection *connection, const char **ret_path)
{
	unsigned int hosts = 0;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
	return guard_check(&listener->guard, &(struct guard_request){
		.path = path,
		.host = hosts == 1 ? header(connection, MHD_HTTP_HEADER_HOST) : NULL,
		.origin = header(connection, "Origin"),
		.site = header(connection, "Sec-Fetch-Site"),
		.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
		.token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
	}, ret_path);
}

static const struct {
	unsigned int status;
	const char *text;
} refusals[] = {
	[GUARD_NO_HOST] = { MHD_HTTP_BAD_REQUEST,
		"The request must have exactly one Host.\n" },
	[GUARD_BAD_HOST] = { MHD_HTTP_FORBIDDEN,
		"The request's Host is not a loopback name. Use localhost or 127.0.0.1.\n" },
	[GUARD_BAD_ORIGIN] = { MHD_HTTP_FORBIDDEN,
		"The request comes from another site's page. Open the address itself.\n" },
	[GUARD_BAD_TOKEN] = { MHD_HTTP_FORBIDDEN,
		"The request has no token, or a wrong one. Use the address that was printed.\n" },
};

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version _unused_,
			      const char *upload _unused_, size_t *upload_size _unused_,
			      void **state _unused_)
{
	struct listener *listener = ctx;
	enum guard_verdict verdict;
	const char *path;

	/* answered before a body is read; what follows it on this connection is not */
	verdict = ask_guard(listener, url, connection, &path);
	if (verdict != GUARD_PASS) {
		atomic_fetch_add(&listener->counts.refused[verdict], 1);
		return send_text(connection, refusals[verdict].status, refusals[verdict].text);
	}
	if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer_request(listener, path, connection);
	atomic_fetch_add(&listener->counts.refused[GUARD_PASS], 1);
	return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			 "Method not allowed. Use GET or HEAD.\n");
}

static void log_library(void *ctx _unused_, const char *format, va_list args) _printf_(2, 0);

static void log_library(void *ctx _unused_, const char *format, va_list args)
{
	char text[HEADER_MAX];

	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("libmicrohttpd: %s", text);
}

/* Its end wakes the thread that listens, which may have waited for room. */
#define BY_THREADS (MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC)

static void follow_connection(void *ctx, struct MHD_Connection *connection, void **state _unused_,
			      enum MHD_ConnectionNotificationCode what)
{
	struct listener *listener = ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		turns_ask(listener->turns, socket_of(connection));
	else
		turns_end(listener->turns, socket_of(connection));
}

/* Its threads take no signals: they are their owner's. */
static struct MHD_Daemon *start(struct listener *listener, int fd)
{
	const unsigned int threads = listener->options.threads, spare = threads ? THREADS_SPARE : 1;
	const unsigned int connections = threads ? threads + spare : CONNECTIONS_MAX;
	struct MHD_Daemon *daemon = NULL;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	listener->turns = turns_new(connections, spare, listener->options.turn_ms ?: TURN_MS,
				    listener->options.patience_ms ?: PATIENCE_MS, &listener->counts.expired);
	if (listener->turns)
		daemon = MHD_start_daemon(
			MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG |
			(threads ? BY_THREADS : MHD_USE_EPOLL), 0, NULL, NULL, handle, listener,
			MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
			MHD_OPTION_NOTIFY_CONNECTION, follow_connection, listener,
			MHD_OPTION_LISTEN_SOCKET, fd,
			MHD_OPTION_CONNECTION_LIMIT, connections,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SILENCE_S,
			MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

static int fail(const struct listener_options *options, int err, char *ret_error, size_t size)
{
	switch (err) {
	case -EINVAL:
		snprintf(ret_error, size, "`%s' is not an address like 8080, 127.0.0.1:8080, "
			 "[::1]:80 or /run/a.socket", options->address);
		break;
	case -EADDRNOTAVAIL:
		snprintf(ret_error, size, "%s is not a loopback address; from another host use ssh "
			 "-L PORT:localhost:PORT", options->address);
		break;
	default:
		snprintf(ret_error, size, "cannot listen on %s: %s", options->address, strerror(-err));
	}
	return err;
}

static int name_it(struct listener *listener)
{
	const char *token = listener->options.token;
	char name[ADDRESS_NAME_MAX];

	address_name(&listener->address, name, sizeof(name));
	if (token) {
		listener->token = strdup(token);
		listener->guard.token = listener->token;
		if (!listener->token)
			return -ENOMEM;
	}
	listener->guard.is_unix = address_is_unix(&listener->address);
	if (asprintf(&listener->bare_name, "%s%s", name, listener->guard.is_unix ? "" : "/") < 0)
		listener->bare_name = NULL;
	if (listener->guard.is_unix || !token)
		listener->name = listener->bare_name ? strdup(listener->bare_name) : NULL;
	else if (asprintf(&listener->name, "%s/%s/", name, token) < 0)
		listener->name = NULL;
	return listener->name && listener->bare_name ? 0 : -ENOMEM;
}

static void free_listener(struct listener *listener)
{
	turns_free(listener->turns);
	free(listener->token);
	free(listener->name);
	free(listener->bare_name);
	free(listener);
}

int listener_open(const struct listener_options *options, struct listener **ret_listener,
		  char *ret_error, size_t error_size)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	_cleanup_close_ int fd = -1;
	int err;

	if (!listener)
		return fail(options, -ENOMEM, ret_error, error_size);
	listener->options = *options;
	err = address_parse(options->address, &listener->address);
	if (!err)
		err = address_listen(&listener->address, &fd);
	if (!err)
		err = name_it(listener);
	if (!err) {
		listener->daemon = start(listener, fd);
		err = listener->daemon ? 0 : -EAGAIN;
	}
	if (err) {
		free_listener(listener);
		return fail(options, err, ret_error, error_size);
	}
	/* which closes it */
	steal_fd(&fd);
	*ret_listener = listener;
	return 0;
}

const char *listener_name(const struct listener *listener)
{
	return listener->name;
}

const char *listener_address(const struct listener *listener)
{
	return listener->bare_name;
}

const struct listener_counts *listener_counts(const struct listener *listener)
{
	return &listener->counts;
}

void listener_close(struct listener *listener)
{
	if (!listener)
		return;
	MHD_stop_daemon(listener->daemon);
	if (listener->guard.is_unix)
		unlink(listener->name);
	free_listener(listener);
}
