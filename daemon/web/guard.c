// SPDX-License-Identifier: Apache-2.0
#include "web/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum { HOST_MAX = 64, TOKEN_BYTES = 16 };

bool guard_is_loopback(const char *host)
{
	struct in6_addr in6;
	struct in_addr in;

	if (!strcasecmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &in) == 1)
		return ntohl(in.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, host, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
}

/* "HOST", "HOST:PORT", "[ADDRESS]:PORT". The port may be another one's, that forwards to us. */
static bool has_loopback_host(const char *text)
{
	size_t length = strcspn(text, ":");
	char host[HOST_MAX];
	const char *rest;

	if (text[0] == '[') {
		text++;
		length = strcspn(text, "]");
		if (!text[length])
			return false;
		rest = text + length + 1;
	} else {
		rest = text + length;
	}
	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	return !*rest && guard_is_loopback(host);
}

static bool is_own_origin(const struct guard_request *request)
{
	static const char scheme[] = "http://";

	if (request->site && strcmp(request->site, "none") && strcmp(request->site, "same-origin"))
		return false;
	return !request->origin || (!strncmp(request->origin, scheme, strlen(scheme)) &&
				    !strcasecmp(request->origin + strlen(scheme), request->host));
}

/* In a time that does not tell how much of it is right. */
static bool is_token(const char *token, const char *said, size_t length)
{
	volatile unsigned char difference = 0;

	if (length != strlen(token))
		return false;
	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)(token[i] ^ said[i]);
	return !difference;
}

static bool knows_token(const char *token, const struct guard_request *request,
			const char **ret_path)
{
	static const char bearer[] = "Bearer ";
	size_t length = strcspn(request->path + 1, "/");

	if (is_token(token, request->path + 1, length)) {
		*ret_path = request->path + 1 + length;
		return true;
	}
	if (request->token && is_token(token, request->token, strlen(request->token)))
		return true;
	if (!request->authorization ||
	    strncasecmp(request->authorization, bearer, strlen(bearer)) != 0)
		return false;
	return is_token(token, request->authorization + strlen(bearer),
			strlen(request->authorization) - strlen(bearer));
}

enum guard_verdict guard_check(const struct guard *guard, const struct guard_request *request,
			       const char **ret_path)
{
	*ret_path = request->path;
	if (!guard->is_unix) {
		if (!request->host)
			return GUARD_NO_HOST;
		if (!has_loopback_host(request->host))
			return GUARD_BAD_HOST;
		if (!is_own_origin(request))
			return GUARD_BAD_ORIGIN;
	}
	if (request->path[0] != '/')
		return GUARD_BAD_TOKEN;
	if (guard->token && !knows_token(guard->token, request, ret_path))
		return GUARD_BAD_TOKEN;
	return GUARD_PASS;
}

int guard_make_token(char ret_token[static GUARD_TOKEN_SIZE])
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(ret_token + 2 * i, "%02x", bytes[i]);
	return 0;
}
