// SPDX-License-Identifier: Apache-2.0
#include "web/request.h"

#include <poll.h>
#include <string.h>

bool web_request_add(struct web_request *request, const char *name, const char *value)
{
	if (request->count == WEB_PAIRS_MAX) {
		request->is_full = true;
		return false;
	}
	request->pairs[request->count].name = name;
	request->pairs[request->count++].value = value;
	return true;
}

const char *web_query(const struct web_request *request, const char *name)
{
	for (size_t i = 0; i < request->count; i++)
		if (!strcmp(request->pairs[i].name, name))
			return request->pairs[i].value;
	return NULL;
}

bool web_is_number(const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	return digits && digits < 10 && !text[digits];
}

static bool has(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

const char *web_unknown_query(const struct web_request *request, const char *const *names)
{
	for (size_t i = 0; i < request->count; i++)
		if (!has(names, request->pairs[i].name))
			return request->pairs[i].name;
	return NULL;
}

bool web_is_gone(const struct web_request *request)
{
	struct pollfd pollfd = { .fd = request->socket, .events = POLLRDHUP };

	return request->socket >= 0 && poll(&pollfd, 1, 0) == 1;
}
