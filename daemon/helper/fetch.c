// SPDX-License-Identifier: Apache-2.0
#include "helper/fetch.h"

#include <curl/curl.h>
#include <string.h>

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

void fetch_prepare(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *transfer = ctx;

	size *= count;
	transfer->is_too_large = size > transfer->max_bytes - transfer->bytes;
	transfer->error = transfer->is_too_large ? 0 : memfd_write(transfer->fd, data, size);
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
	return !curl_easy_setopt(curl, CURLOPT_URL, url) &&
	       !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       !curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") &&
	       !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L) &&
	       !curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX) &&
	       !curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L) &&
	       !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
	       !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, min_of(limit, (long)CONNECT_SECONDS)) &&
	       !curl_easy_setopt(curl, CURLOPT_TIMEOUT, limit) &&
	       !curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->max_bytes) &&
	       !curl_easy_setopt(curl, CURLOPT_USERAGENT, "stacktap/" STACKTAP_VERSION) &&
	       !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error) &&
	       !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) &&
	       !curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
}

static int fetch(const struct fetch_request *request, int fd, struct fetch_reply *reply)
{
	struct transfer transfer = { .fd = fd, .max_bytes = request->max_bytes };
	char error[CURL_ERROR_SIZE] = "";
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode code;

	if (!curl || !set_up(curl, request, &transfer, error)) {
		curl_easy_cleanup(curl);
		return -ENOMEM;
	}
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	reply->outcome = outcome_of(&transfer, code, status);
	reply->bytes = transfer.bytes;
	if (transfer.error)
		snprintf(error, sizeof(error), "%s", strerror(-transfer.error));
	else if (code == CURLE_OK && !transfer.bytes)
		snprintf(error, sizeof(error), "the answer is empty");
	else if (code != CURLE_OK && !error[0])
		snprintf(error, sizeof(error), "%s", curl_easy_strerror(code));
	utf8_copy(reply->detail, sizeof(reply->detail), error);
	return 0;
}

void fetch_answer(struct serve_request *request, struct serve_answer *answer)
{
	const struct fetch_request *wanted = request->payload;
	struct fetch_reply *reply = (void *)answer->payload;

	if (request->op != FETCH_DEBUG || request->bytes != sizeof(*wanted) || request->fd < 0) {
		answer->result = -EINVAL;
		return;
	}
	memset(reply, 0, sizeof(*reply));
	answer->bytes = sizeof(*reply);
	answer->result = fetch(wanted, request->fd, reply);
}
