// SPDX-License-Identifier: Apache-2.0
#include "export/environment.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "export/compression.h"

#define TEXT_MAX 65536u		/* of one variable */

/* The variable's text without surrounding blanks, NULL when unset or empty. */
static char *variable_get(const char *name)
{
	const char *text = getenv(name);
	size_t length;

	if (!text)
		return NULL;
	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return length ? strndup(text, length) : NULL;
}

/* A signal's variable before the generic one; *ret_name for messages. */
static char *signal_get(const char *signal, const char *name, char *ret_name, size_t name_size)
{
	char *text;

	snprintf(ret_name, name_size, "OTEL_EXPORTER_OTLP_%s_%s", signal, name);
	text = variable_get(ret_name);
	if (text)
		return text;
	snprintf(ret_name, name_size, "OTEL_EXPORTER_OTLP_%s", name);
	return variable_get(ret_name);
}

static char *exporter_get(const char *name, char *ret_name, size_t name_size)
{
	return signal_get("PROFILES", name, ret_name, name_size);
}

/* [text, end) without blanks around it, decoded in place at @out. */
static int percent_decode(const char *text, const char *end, char *out)
{
	while (text < end && isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (; text < end; text++) {
		const bool is_encoded = *text == '%';
		const int c = is_encoded ? hex_percent(text, end) : (unsigned char)*text;

		/* a line break could end a header and begin another */
		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
		text += is_encoded ? 2 : 0;
		*out++ = (char)c;
	}
	*out = '\0';
	return 0;
}

int environment_each_pair(const char *text, int (*each)(void *ctx, const char *key, const char *value),
			  void *ctx)
{
	size_t length = strlen(text);
	_cleanup_free_ char *key = NULL, *value = NULL;
	const char *end, *equals;
	int err;

	if (length > TEXT_MAX)
		return -EINVAL;
	key = malloc(length + 1);
	value = malloc(length + 1);
	if (!key || !value)
		return -ENOMEM;
	for (; *text; text = *end ? end + 1 : end) {
		end = strchrnul(text, ',');
		if (text + strspn(text, " \t") == end)
			continue;
		equals = memchr(text, '=', (size_t)(end - text));
		if (!equals || percent_decode(text, equals, key) || !key[0] ||
		    percent_decode(equals + 1, end, value))
			return -EINVAL;
		err = each(ctx, key, value);
		if (err)
			return err;
	}
	return 0;
}

static int ignore_pair(void *ctx _unused_, const char *key _unused_, const char *value _unused_)
{
	return 0;
}

bool environment_is_pairs(const char *text)
{
	return !environment_each_pair(text, ignore_pair, NULL);
}

bool environment_is_url(const char *text)
{
	return !strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8) ||
	       !strncmp(text, "unix:/", 6);
}

char *environment_signal_url(const char *base, const struct otlp_signal *of, bool is_grpc)
{
	size_t length = strlen(base);
	char *url;

	if (!strncmp(base, "unix:", 5))
		return strdup(base);
	while (length && base[length - 1] == '/')
		length--;
	return asprintf(&url, "%.*s/%s", (int)length, base,
			is_grpc ? of->grpc_path : of->http_path) < 0 ? NULL : url;
}

static int add_resource(void *ctx, const char *key, const char *value)
{
	struct environment *environment = ctx;
	struct encode_attribute *attribute;

	if (environment->resource_count == ENCODE_MAX_RESOURCE)
		return -E2BIG;
	attribute = &environment->resource[environment->resource_count];
	attribute->key = strdup(key);
	attribute->value = strdup(value);
	environment->resource_count++;
	return attribute->key && attribute->value ? 0 : -ENOMEM;
}

static int load_resource(struct environment *environment, char *ret_error, size_t error_size)
{
	_cleanup_free_ char *text = variable_get("OTEL_RESOURCE_ATTRIBUTES");
	int err;

	if (!text)
		return 0;
	environment->resource = calloc(ENCODE_MAX_RESOURCE, sizeof(*environment->resource));
	if (!environment->resource)
		return -ENOMEM;
	err = environment_each_pair(text, add_resource, environment);
	if (err == -EINVAL)
		snprintf(ret_error, error_size,
			 "OTEL_RESOURCE_ATTRIBUTES is not of the form key=value,key=value, "
			 "percent-encoded");
	if (err != -E2BIG)
		return err;
	snprintf(ret_error, error_size,
		 "OTEL_RESOURCE_ATTRIBUTES has more than the %d attributes that fit; give fewer",
		 ENCODE_MAX_RESOURCE);
	return -EINVAL;
}

static int count_pair(void *ctx, const char *key, const char *value)
{
	size_t *count = ctx;

	(void)key;
	(void)value;
	(*count)++;
	return 0;
}

/*
 * Over HTTP the endpoint of a signal, variable @own, is a full URL as it is, the generic one a base; over gRPC both are
 * a base.
 */
static int load_endpoint(const char *own, const struct otlp_signal *of, char **ret_http, char **ret_grpc,
			 bool *ret_is_own, char *ret_error, size_t error_size)
{
	const char *name = own;
	_cleanup_free_ char *text = variable_get(name);
	const bool is_full = text;

	*ret_is_own = is_full;
	if (!text) {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT";
		text = variable_get(name);
	}
	if (!text)
		return 0;
	if (!environment_is_url(text)) {
		snprintf(ret_error, error_size, "%s does not start with http://, https:// or unix:/", name);
		return -EINVAL;
	}
	*ret_grpc = environment_signal_url(text, of, true);
	*ret_http = is_full ? steal_ptr(text) : environment_signal_url(text, of, false);
	return *ret_http && *ret_grpc ? 0 : -ENOMEM;
}

static int load_protocol(struct environment *environment, char *ret_error, size_t error_size)
{
	char name[64];
	static const char *const names[] = { PROTOCOL_NAMES };
	_cleanup_free_ char *text = exporter_get("PROTOCOL", name, sizeof(name));

	if (!text)
		return 0;
	environment->has_protocol = true;
	for (unsigned int i = 0; i < PROTOCOL_COUNT; i++)
		if (!strcmp(text, names[i])) {
			environment->protocol = i;
			return 0;
		}
	snprintf(ret_error, error_size, "%s is \"%.32s\"; stacktap speaks grpc, http/protobuf and http/json",
		 name, text);
	return -EINVAL;
}

static int load_compression(struct environment *environment, char *ret_error, size_t error_size)
{
	char name[64];
	static const char *const names[] = { "none", "gzip", "zstd" };
	_cleanup_free_ char *text = exporter_get("COMPRESSION", name, sizeof(name));

	if (!text)
		return 0;
	environment->has_compression = true;
	for (unsigned int i = 0; i < COMPRESSION_COUNT; i++)
		if (!strcmp(text, names[i])) {
			environment->compression = i;
			return 0;
		}
	snprintf(ret_error, error_size, "%s is \"%.32s\"; it can be gzip, zstd or none", name, text);
	return -EINVAL;
}

/* 0: not given. */
static int parse_ms(const char *name, const char *text, uint64_t *ret_ms, char *ret_error, size_t error_size)
{
	unsigned long value;
	char *end;

	*ret_ms = 0;
	if (!text)
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || value < 1 || value > 3600000) {
		snprintf(ret_error, error_size,
			 "%s is \"%.32s\"; it must be milliseconds from 1 to 3600000", name, text);
		return -EINVAL;
	}
	*ret_ms = value;
	return 0;
}

static int load_timeout(struct environment *environment, char *ret_error, size_t error_size)
{
	char name[64];
	_cleanup_free_ char *text = exporter_get("TIMEOUT", name, sizeof(name));
	uint64_t ms;
	int err = parse_ms(name, text, &ms, ret_error, error_size);

	environment->timeout_ms = (unsigned int)ms;
	return err;
}

static int load_interval(struct environment *environment, char *ret_error, size_t error_size)
{
	static const char name[] = "OTEL_METRIC_EXPORT_INTERVAL";
	_cleanup_free_ char *text = variable_get(name);

	return parse_ms(name, text, &environment->metrics_interval_ms, ret_error, error_size);
}

static int check_headers(const char *name, const char *headers, char *ret_error, size_t error_size)
{
	size_t count = 0;
	int err = headers ? environment_each_pair(headers, count_pair, &count) : 0;

	/* the value may be a secret: it stays out of the message */
	if (err == -EINVAL)
		snprintf(ret_error, error_size,
			 "%s is not of the form name=value,name=value, percent-encoded", name);
	return err;
}

static int load_headers(struct environment *environment, char *ret_error, size_t error_size)
{
	static const char generic[] = "OTEL_EXPORTER_OTLP_HEADERS", metrics[] = "OTEL_EXPORTER_OTLP_METRICS_HEADERS";
	char name[64];

	environment->headers = exporter_get("HEADERS", name, sizeof(name));
	environment->generic_headers = variable_get(generic);
	environment->metrics_headers = variable_get(metrics);
	return check_headers(name, environment->headers, ret_error, error_size) ?:
	       check_headers(generic, environment->generic_headers, ret_error, error_size) ?:
	       check_headers(metrics, environment->metrics_headers, ret_error, error_size);
}

int environment_load(struct environment *ret_environment, char *ret_error, size_t error_size)
{
	struct environment *environment = ret_environment;
	_cleanup_free_ char *disabled = variable_get("OTEL_SDK_DISABLED");
	char name[64];
	int err;

	*environment = (struct environment){ 0 };
	snprintf(ret_error, error_size, "out of memory");
	environment->is_disabled = disabled && !strcasecmp(disabled, "true");
	err = load_protocol(environment, ret_error, error_size) ?:
	      load_endpoint("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", &otlp_profiles, &environment->endpoint,
			    &environment->grpc_endpoint, &environment->has_profiles_endpoint, ret_error, error_size) ?:
	      load_endpoint("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &otlp_metrics, &environment->metrics_endpoint,
			    &environment->metrics_grpc_endpoint, &environment->has_metrics_endpoint, ret_error, error_size) ?:
	      load_interval(environment, ret_error, error_size) ?:
	      load_headers(environment, ret_error, error_size) ?:
	      load_compression(environment, ret_error, error_size) ?:
	      load_timeout(environment, ret_error, error_size) ?:
	      load_resource(environment, ret_error, error_size);
	if (err) {
		environment_free(environment);
		return err;
	}
	environment->certificate = exporter_get("CERTIFICATE", name, sizeof(name));
	environment->client_certificate = exporter_get("CLIENT_CERTIFICATE", name, sizeof(name));
	environment->client_key = exporter_get("CLIENT_KEY", name, sizeof(name));
	environment->metrics_certificate = signal_get("METRICS", "CERTIFICATE", name, sizeof(name));
	environment->metrics_client_certificate = signal_get("METRICS", "CLIENT_CERTIFICATE", name, sizeof(name));
	environment->metrics_client_key = signal_get("METRICS", "CLIENT_KEY", name, sizeof(name));
	environment->service_name = variable_get("OTEL_SERVICE_NAME");
	ret_error[0] = '\0';
	return 0;
}

void environment_free(struct environment *environment)
{
	free(environment->endpoint);
	free(environment->grpc_endpoint);
	free(environment->metrics_endpoint);
	free(environment->metrics_grpc_endpoint);
	free(environment->headers);
	free(environment->certificate);
	free(environment->client_certificate);
	free(environment->client_key);
	free(environment->generic_headers);
	free(environment->metrics_headers);
	free(environment->metrics_certificate);
	free(environment->metrics_client_certificate);
	free(environment->metrics_client_key);
	free(environment->service_name);
	for (size_t i = 0; i < environment->resource_count; i++) {
		free((char *)(uintptr_t)environment->resource[i].key);
		free((char *)(uintptr_t)environment->resource[i].value);
	}
	free(environment->resource);
	*environment = (struct environment){ 0 };
}
