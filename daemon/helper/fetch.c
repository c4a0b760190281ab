// SPDX-License-Identifier: Apache-2.0
#include "helper/fetch.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "helper/memfd.h"
#include "stacktap/version.h"

enum {
	CONNECT_SECONDS = 10,
	REDIRECTS_MAX = 5,
};

struct transfer {
	int fd;
	uint64_t bytes, max_bytes;
	bool is_too_large;
	int error;		/* of writing */
};

/*
 * The library needs seventeen others, which no command but one process of one of them wants. All distributions
 * have had its ABI 4 since 2006; Debian's other build has it under another name.
 */
static struct {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *init;
	__typeof__(&curl_easy_setopt) set;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(&curl_easy_getinfo) info;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_easy_strerror) *text;
} library;

static bool load(void)
{
	static const char *const names[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };
	void *handle = NULL;

	for (size_t i = 0; !handle && i < ARRAY_SIZE(names); i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
	*(void **)&library.global_init = dlsym(handle, "curl_global_init");
	*(void **)&library.init = dlsym(handle, "curl_easy_init");
	*(void **)&library.set = dlsym(handle, "curl_easy_setopt");
	*(void **)&library.perform = dlsym(handle, "curl_easy_perform");
	*(void **)&library.info = dlsym(handle, "curl_easy_getinfo");
	*(void **)&library.cleanup = dlsym(handle, "curl_easy_cleanup");
	*(void **)&library.text = dlsym(handle, "curl_easy_strerror");
	return library.global_init && library.init && library.set && library.perform && library.info &&
	       library.cleanup && library.text;
}

void fetch_prepare(void)
{
	if (!load() || library.global_init(CURL_GLOBAL_DEFAULT))
		memset(&library, 0, sizeof(library));
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *transfer = ctx;

	size *= count;
	transfer->is_too_large = size > transfer->max_bytes - transfer->bytes;
	transfer->error = transfer->is_too_large ? 0 : file_write(transfer->fd, data, size);
	if (transfer->is_too_large || transfer->error)
		return CURL_WRITEFUNC_ERROR;
	transfer->bytes += size;
	return size;
}

static enum fetch_outcome outcome_of(const struct transfer *transfer, CURLcode code, long status)
{
	if (transfer->is_too_large || code == CURLE_FILESIZE_EXCEEDED)
		return FETCH_TOO_LARGE;
	switch (code) {
	case CURLE_OK:
		return transfer->bytes ? FETCH_FOUND : FETCH_FAILED;
	case CURLE_HTTP_RETURNED_ERROR:
		return status == 404 || status == 410 ? FETCH_ABSENT : FETCH_FAILED;
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_GOT_NOTHING:
		return FETCH_UNREACHABLE;
	case CURLE_OPERATION_TIMEDOUT:
		return FETCH_TIMED_OUT;
	default:
		return FETCH_FAILED;
	}
}

static bool set_up(CURL *curl, const struct fetch_request *request, struct transfer *transfer,
		   char *error)
{
	const long limit = (long)request->limit_seconds;
	char url[FETCH_URL_MAX + 80];

	snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", request->url, request->build_id);
	return !library.set(curl, CURLOPT_URL, url) &&
	       !library.set(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       !library.set(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") &&
	       !library.set(curl, CURLOPT_FOLLOWLOCATION, 1L) &&
	       !library.set(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX) &&
	       !library.set(curl, CURLOPT_FAILONERROR, 1L) &&
	       !library.set(curl, CURLOPT_NOSIGNAL, 1L) &&
	       !library.set(curl, CURLOPT_CONNECTTIMEOUT, min_of(limit, (long)CONNECT_SECONDS)) &&
	       !library.set(curl, CURLOPT_TIMEOUT, limit) &&
	       !library.set(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->max_bytes) &&
	       !library.set(curl, CURLOPT_USERAGENT, "stacktap/" STACKTAP_VERSION) &&
	       !library.set(curl, CURLOPT_ERRORBUFFER, error) &&
	       !library.set(curl, CURLOPT_WRITEFUNCTION, on_body) &&
	       !library.set(curl, CURLOPT_WRITEDATA, transfer);
}

static int fetch(const struct fetch_request *request, int fd, struct fetch_reply *reply)
{
	struct transfer transfer = { .fd = fd, .max_bytes = request->max_bytes };
	char error[CURL_ERROR_SIZE] = "";
	CURL *curl = library.init();
	long status = 0;
	CURLcode code;

	if (!curl || !set_up(curl, request, &transfer, error)) {
		library.cleanup(curl);
		return -ENOMEM;
	}
	code = library.perform(curl);
	library.info(curl, CURLINFO_RESPONSE_CODE, &status);
	library.cleanup(curl);
	reply->outcome = outcome_of(&transfer, code, status);
	reply->bytes = transfer.bytes;
	if (transfer.error)
		snprintf(error, sizeof(error), "%s", strerror(-transfer.error));
	else if (code == CURLE_OK && !transfer.bytes)
		snprintf(error, sizeof(error), "the answer is empty");
	else if (code != CURLE_OK && !error[0])
		snprintf(error, sizeof(error), "%s", library.text(code));
	utf8_copy(reply->detail, sizeof(reply->detail), error);
	return 0;
}

void fetch_answer(struct serve_request *request, struct serve_answer *answer)
{
	const struct fetch_request *wanted = request->payload;
	struct fetch_reply *reply = (void *)answer->payload;

	if (request->op != FETCH_DEBUG || request->bytes != sizeof(*wanted) || request->fd < 0 ||
	    !memchr(wanted->url, '\0', sizeof(wanted->url)) ||
	    !memchr(wanted->build_id, '\0', sizeof(wanted->build_id))) {
		answer->result = -EINVAL;
		return;
	}
	memset(reply, 0, sizeof(*reply));
	answer->bytes = sizeof(*reply);
	if (!library.init) {
		reply->outcome = FETCH_FAILED;
		snprintf(reply->detail, sizeof(reply->detail), "libcurl cannot be loaded; install it");
		return;
	}
	answer->result = fetch(wanted, request->fd, reply);
}
