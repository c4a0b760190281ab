// SPDX-License-Identifier: Apache-2.0
#include "service/config.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/percent.h"
#include "broker/broker.h"
#include "client/event.h"
#include "export/compression.h"
#include "export/otlp_signal.h"
#include "export/protocol.h"
#include "helper/debuginfod.h"
#include "helper/index_store.h"
#include "resolve/symbolizer.h"
#include "resolve/unwinder.h"
#include "service/endpoint.h"
#include "service/option.h"

#define FIELD(field) offsetof(struct config, field)

static const struct option options[] = {
	{ "profile", "event", OPTION_EVENT, 0, 0, 0, { NULL } },
	{ "profile", "rate", OPTION_NUMBER, FIELD(rate_hz), 1, STACKTAP_MAX_RATE_HZ, { NULL } },
	{ "profile", "period", OPTION_NUMBER, FIELD(period), 0, INT64_MAX, { NULL } },
	{ "profile", "mode", OPTION_CHOICE, FIELD(is_frequency), 0, 0, { "period", "frequency" } },
	{ "profile", "jitter", OPTION_BOOL, FIELD(with_jitter), 0, 0, { NULL } },
	{ "profile", "window_seconds", OPTION_NUMBER, FIELD(window_seconds), 1, 3600, { NULL } },
	{ "profile", "window_max_seconds", OPTION_NUMBER, FIELD(window_max_seconds), 1, 3600,
	  { NULL } },
	{ "profile", "exact_times", OPTION_BOOL, FIELD(with_exact_times), 0, 0, { NULL } },
	{ "profile", "max_stack", OPTION_NUMBER, FIELD(max_stack), 1, STACKTAP_MAX_USER_FRAMES,
	  { NULL } },
	{ "profile", "unnamed", OPTION_CHOICE, FIELD(names_ranges), 0, 0, { "address", "range" } },
	{ "profile", "kernel_suffix", OPTION_STRING, FIELD(kernel_suffix), 0, 0, { NULL } },
	{ "profile", "repeat_functions", OPTION_BOOL, FIELD(repeats_functions), 0, 0, { NULL } },
	{ "profile", "budget_ns", OPTION_STRING, FIELD(budget_ns), 0, 0, { NULL } },
	{ "profile", "ceiling", OPTION_STRING, FIELD(ceiling), 0, 0, { NULL } },
	{ "filter", "cpus", OPTION_STRING, FIELD(cpus), 0, 0, { NULL } },
	{ "filter", "users", OPTION_STRING, FIELD(users), 0, 0, { NULL } },
	{ "filter", "comms", OPTION_STRING, FIELD(comms), 0, 0, { NULL } },
	{ "filter", "cgroups", OPTION_STRING, FIELD(cgroups), 0, 0, { NULL } },
	{ "filter", "user_only", OPTION_BOOL, FIELD(user_only), 0, 0, { NULL } },
	{ "filter", "kernel_only", OPTION_BOOL, FIELD(kernel_only), 0, 0, { NULL } },
	{ "filter", "exclude_idle", OPTION_BOOL, FIELD(exclude_idle), 0, 0, { NULL } },
	{ "capture", "ring_bytes", OPTION_BYTES, FIELD(ring_bytes), STACKTAP_RING_MIN_BYTES,
	  STACKTAP_RING_MAX_BYTES, { NULL } },
	{ "capture", "sideband_bytes", OPTION_BYTES, FIELD(sideband_bytes), 4096, 1 << 26,
	  { NULL } },
	{ "unwind", "tables", OPTION_BOOL, FIELD(with_tables), 0, 0, { NULL } },
	{ "unwind", "deferred", OPTION_BOOL, FIELD(with_deferred), 0, 0, { NULL } },
	{ "unwind", "slice_bytes", OPTION_BYTES, FIELD(slice_bytes), STACKTAP_MIN_SLICE_BYTES,
	  STACKTAP_MAX_SLICE_BYTES, { NULL } },
	{ "unwind", "slice_max_bytes", OPTION_BYTES, FIELD(slice_max_bytes), 0,
	  STACKTAP_MAX_SLICE_BYTES, { NULL } },
	{ "unwind", "fault_in", OPTION_BOOL, FIELD(fault_in), 0, 0, { NULL } },
	{ "export", "endpoint", OPTION_STRING, FIELD(endpoint), 0, 0, { NULL } },
	{ "export", "protocol", OPTION_CHOICE, FIELD(protocol), 0, 0, { PROTOCOL_NAMES } },
	{ "export", "headers", OPTION_STRING, FIELD(headers), 0, 0, { NULL } },
	{ "export", "headers_file", OPTION_STRING, FIELD(headers_file), 0, 0, { NULL } },
	{ "export", "certificate", OPTION_STRING, FIELD(certificate), 0, 0, { NULL } },
	{ "export", "client_certificate", OPTION_STRING, FIELD(client_certificate), 0, 0,
	  { NULL } },
	{ "export", "client_key", OPTION_STRING, FIELD(client_key), 0, 0, { NULL } },
	{ "export", "compression", OPTION_CHOICE, FIELD(compression), 0, 0, { "none", "gzip", "zstd" } },
	{ "export", "timeout_seconds", OPTION_NUMBER, FIELD(timeout_seconds), 1, 600, { NULL } },
	{ "export", "wire_version", OPTION_CHOICE, FIELD(wire_version), 0, 0, { OTLP_WIRE_VERSION } },
	{ "store", "directory", OPTION_STRING, FIELD(store_directory), 0, 0, { NULL } },
	{ "store", "max_bytes", OPTION_BYTES, FIELD(store_max_bytes), 65536, UINT64_C(1) << 50,
	  { NULL } },
	{ "store", "max_age_hours", OPTION_NUMBER, FIELD(store_max_age_hours), 0, 87600, { NULL } },
	{ "spool", "directory", OPTION_STRING, FIELD(spool_directory), 0, 0, { NULL } },
	{ "spool", "max_bytes", OPTION_BYTES, FIELD(spool_max_bytes), 65536, UINT64_C(1) << 50,
	  { NULL } },
	{ "spool", "max_age_hours", OPTION_NUMBER, FIELD(spool_max_age_hours), 0, 87600, { NULL } },
	{ "spool", "journal", OPTION_BOOL, FIELD(with_journal), 0, 0, { NULL } },
	{ "metrics", "listen", OPTION_STRING, FIELD(metrics_listen), 0, 0, { NULL } },
	{ "metrics", "push", OPTION_BOOL, FIELD(with_push), 0, 0, { NULL } },
	{ "metrics", "push_endpoint", OPTION_STRING, FIELD(push_endpoint), 0, 0, { NULL } },
	{ "metrics", "push_headers", OPTION_STRING, FIELD(push_headers), 0, 0, { NULL } },
	{ "metrics", "push_seconds", OPTION_NUMBER, FIELD(push_seconds), 1, 3600, { NULL } },
	{ "serve", "listen", OPTION_STRING, FIELD(serve_listen), 0, 0, { NULL } },
	{ "resource", "service_name", OPTION_STRING, FIELD(service_name), 0, 0, { NULL } },
	{ "resource", "attributes", OPTION_STRING, FIELD(attributes), 0, 0, { NULL } },
	{ "relabel", "rule", OPTION_RULE, 0, 0, 0, { NULL } },
	{ "privacy", "command_line", OPTION_BOOL, FIELD(with_command_line), 0, 0, { NULL } },
	{ "privacy", "kernel_addresses", OPTION_BOOL, FIELD(with_kernel_addresses), 0, 0,
	  { NULL } },
	{ "symbols", "wait_seconds", OPTION_NUMBER, FIELD(names_seconds), 2, 60, { NULL } },
	{ "symbols", "lines", OPTION_BOOL, FIELD(with_lines), 0, 0, { NULL } },
	{ "symbols", "index_directory", OPTION_STRING, FIELD(index_directory), 0, 0, { NULL } },
	{ "symbols", "index_max_bytes", OPTION_BYTES, FIELD(index_max_bytes), 0, UINT64_C(1) << 50, { NULL } },
	{ "symbols", "debuginfod", OPTION_STRING, FIELD(debuginfod), 0, 0, { NULL } },
	{ "symbols", "debuginfod_directory", OPTION_STRING, FIELD(debuginfod_directory), 0, 0,
	  { NULL } },
	{ "symbols", "debuginfod_max_bytes", OPTION_BYTES, FIELD(debuginfod_max_bytes), 65536,
	  UINT64_C(1) << 50, { NULL } },
	{ "symbols", "debuginfod_file_bytes", OPTION_BYTES, FIELD(debuginfod_file_bytes), 65536,
	  UINT64_C(1) << 40, { NULL } },
	{ "symbols", "debuginfod_seconds", OPTION_NUMBER, FIELD(debuginfod_seconds), 1,
	  DEBUGINFOD_SECONDS_MAX, { NULL } },
	{ "fleet", "kill_switch", OPTION_STRING, FIELD(kill_switch), 0, 0, { NULL } },
	{ "fleet", "duty_percent", OPTION_NUMBER, FIELD(duty_percent), 1, 100, { NULL } },
	{ "fleet", "watch", OPTION_BOOL, FIELD(with_watch), 0, 0, { NULL } },
	{ "daemon", "load_module", OPTION_BOOL, FIELD(load_module), 0, 0, { NULL } },
	{ "daemon", "log_level", OPTION_LEVEL, FIELD(log_level), 0, 0, { NULL } },
	{ "daemon", "status_seconds", OPTION_NUMBER, FIELD(status_seconds), 1, 3600, { NULL } },
	{ "daemon", "stop_seconds", OPTION_NUMBER, FIELD(stop_seconds), 1, 600, { NULL } },
};

void config_init(struct config *config)
{
	*config = (struct config){
		.events = { "cycles" },
		.event_count = 1,
		.rate_hz = 19,
		.with_jitter = true,
		.window_seconds = 15,
		.window_max_seconds = 60,
		.max_stack = STACKTAP_DEFAULT_USER_FRAMES,
		.exclude_idle = true,
		.ring_bytes = 262144,
		.sideband_bytes = 32768,
		.with_tables = true,
		.with_deferred = true,
		.slice_bytes = UNWINDER_SLICE_BYTES,
		.slice_max_bytes = UNWINDER_SLICE_MAX_BYTES,
		.fault_in = true,
		.compression = COMPRESSION_GZIP,
		.timeout_seconds = 10,
		.store_directory = strdup("/var/lib/stacktap"),
		.store_max_bytes = 256 << 20,
		.spool_directory = strdup("/var/lib/stacktap/spool"),
		.spool_max_bytes = 256 << 20,
		.spool_max_age_hours = 24,
		.with_journal = true,
		.push_seconds = 60,
		.with_kernel_addresses = true,
		.names_seconds = NAMES_WINDOW_MS / 1000,
		.index_max_bytes = INDEX_STORE_BYTES,
		.debuginfod_max_bytes = DEBUGINFOD_CACHE_BYTES,
		.debuginfod_file_bytes = DEBUGINFOD_FILE_BYTES,
		.debuginfod_seconds = DEBUGINFOD_SECONDS,
		.kill_switch = strdup("/etc/stacktap/off"),
		.duty_percent = 100,
		.load_module = true,
		.log_level = LOG_LEVEL_INFO,
		.status_seconds = 10,
		.stop_seconds = 10,
	};
}

void config_done(struct config *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		option_done(&options[i], config);
	for (size_t i = 0; i < config->rule_count; i++)
		free(config->rules[i]);
	for (size_t i = 0; i < config->receiver_count; i++)
		receiver_done(&config->receivers[i]);
	*config = (struct config){ 0 };
}

struct load {
	struct config config;
	bool has_event;		/* the file's events replace the default one */
	struct receiver *receiver; /* whose section it is */
	char *error;
	size_t error_size;
};

static int set_event(struct load *load, const char *text)
{
	struct config *config = &load->config;
	struct control_source source;
	int ret;

	if (!load->has_event)
		config->event_count = 0;
	load->has_event = true;
	if (config->event_count == STACKTAP_MAX_SOURCES)
		return fail_invalid(load->error, load->error_size, "more than %d events",
				    STACKTAP_MAX_SOURCES);
	if (strlen(text) >= CONFIG_MAX_EVENT)
		return fail_invalid(load->error, load->error_size, "event name is too long");
	ret = event_parse(text, &source, load->error, load->error_size);
	if (ret < 0)
		return ret;
	strcpy(config->events[config->event_count++], text);
	return 0;
}

/* Checked here, so that the error has its line. */
static int set_rule(struct load *load, const char *text)
{
	struct config *config = &load->config;
	struct relabel *relabel = NULL;
	int ret;

	if (!*text)
		return 0;
	if (config->rule_count == RELABEL_MAX_RULES)
		return fail_invalid(load->error, load->error_size,
				    "more than %d rules", RELABEL_MAX_RULES);
	ret = relabel_new(&relabel);
	if (!ret)
		ret = relabel_add(relabel, text, load->error, load->error_size);
	relabel_free(relabel);
	if (ret < 0)
		return ret;
	config->rules[config->rule_count] = strdup(text);
	if (!config->rules[config->rule_count])
		return -ENOMEM;
	config->rule_count++;
	return 0;
}

static int set_option(struct load *load, const struct option *option, const char *text)
{
	switch (option->kind) {
	case OPTION_EVENT:
		return set_event(load, text);
	case OPTION_RULE:
		return set_rule(load, text);
	default:
		return option_set(option, &load->config, text, load->error, load->error_size);
	}
}

static const char destination[] = CONFIG_DESTINATIONS " ";

static bool is_destination(const char *section)
{
	return !strncmp(section, destination, strlen(destination));
}

/* A new one, or the one that has the name already. */
static int take_receiver(struct load *load, const char *name)
{
	struct config *config = &load->config;
	size_t i = 0;
	int ret;

	while (i < config->receiver_count && strcmp(config->receivers[i].name, name))
		i++;
	if (i == CONFIG_MAX_RECEIVERS)
		return fail_invalid(load->error, load->error_size, "more than %d destinations",
				    CONFIG_MAX_RECEIVERS);
	load->receiver = &config->receivers[i];
	if (i < config->receiver_count)
		return 0;
	ret = receiver_init(load->receiver, name, load->error, load->error_size);
	config->receiver_count += !ret;
	return ret;
}

/* "; did you mean `NAME'?" */
static const char *meant(const struct near *near, char hint[static 64])
{
	const char *name = near_best(near);

	hint[0] = '\0';
	if (name)
		snprintf(hint, 64, "; did you mean `%s'?", name);
	return hint;
}

static int take_section(void *ctx, const char *section)
{
	struct near near = near_to(section);
	struct load *load = ctx;
	char hint[64];

	if (is_destination(section))
		return take_receiver(load, section + strlen(destination));
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!strcmp(options[i].section, section))
			return 0;
		near_see(&near, options[i].section);
	}
	return fail_invalid(load->error, load->error_size, "unknown section [%.64s]%s", section,
			    meant(&near, hint));
}

static int take_option(void *ctx, const char *section, const char *name, const char *value)
{
	struct near near = near_to(name);
	struct load *load = ctx;
	char hint[64];

	if (is_destination(section))
		return receiver_set(load->receiver, name, value, load->error, load->error_size);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (strcmp(options[i].section, section) != 0)
			continue;
		if (!strcmp(options[i].name, name))
			return set_option(load, &options[i], value);
		near_see(&near, options[i].name);
	}
	return fail_invalid(load->error, load->error_size,
			    "unknown option `%.64s' in section [%s]%s",
			    name, section, meant(&near, hint));
}

/* As file_open(), where only root may be allowed to read it. */
static int open_file(const char *path, FILE **ret_file)
{
	int r = file_open(path, ret_file), fd;

	if (r != -EACCES || !broker_is_there())
		return r;
	fd = broker_open_config();
	if (fd < 0)
		return fd;
	*ret_file = fdopen(fd, "r");
	if (*ret_file)
		return 0;
	close(fd);
	return -ENOMEM;
}

int config_load(const char *path, struct config *ret_config, char *error, size_t error_size)
{
	char sentence[384] = "out of memory";
	struct load load = { .error = sentence, .error_size = sizeof(sentence) };
	const struct ini_reader reader = {
		.section = take_section, .option = take_option, .ctx = &load,
	};
	_cleanup_fclose_ FILE *file = NULL;
	const char *form;
	unsigned int line;
	int ret;

	ret = open_file(path, &file);
	if (ret < 0) {
		snprintf(error, error_size, "%s: %s", path,
			 ret == -EINVAL ? "not a regular file; the configuration must be one, or /dev/null" : strerror(-ret));
		return ret;
	}
	config_init(&load.config);
	ret = ini_read(file, &reader, &line, &form);
	if (ret < 0) {
		/* reading itself failed, as that of a directory does */
		if (ret != -EINVAL && ret != -ENOMEM)
			form = strerror(-ret);
		snprintf(error, error_size, "%s:%u: %s", path, line, form ? form : sentence);
		config_done(&load.config);
		return ret == -ENOMEM ? ret : -EINVAL;
	}
	ret = config_check(&load.config, sentence, sizeof(sentence));
	if (ret < 0) {
		snprintf(error, error_size, "%s: %s", path, sentence);
		config_done(&load.config);
		return ret;
	}
	*ret_config = load.config;
	return 0;
}

int config_budget(const struct config *config, uint32_t *ret_ns)
{
	static const struct option option = { .kind = OPTION_NUMBER, .maximum = UINT32_MAX };
	uint64_t ns;

	if (!config->budget_ns)
		return -ENOENT;
	if (option_parse_number(&option, config->budget_ns, &ns) < 0)
		return -EINVAL;
	*ret_ns = (uint32_t)ns;
	return 0;
}

/* But for slashes at the end. */
static bool same_directory(const char *a, const char *b)
{
	const size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return !strncmp(a, b, length) && !a[length + strspn(a + length, "/")] &&
	       !b[length + strspn(b + length, "/")];
}

/* Each spool is one destination's, and none the store. */
static int check_directories(const struct config *config, char *error, size_t error_size)
{
	const char *directories[CONFIG_MAX_RECEIVERS + 2] = { config->store_directory, config->spool_directory };
	const size_t count = config->receiver_count + 2;

	for (size_t i = 0; i < config->receiver_count; i++)
		directories[i + 2] = config->receivers[i].spool_directory;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (directories[i] && directories[k] && same_directory(directories[i], directories[k]))
				return fail_invalid(error, error_size, i == 1 ?
						    "[spool] and [store] must use different directories" :
						    "[store] and each destination's spool must use "
						    "different directories");
	return 0;
}

int config_check(const struct config *config, char *error, size_t error_size)
{
	struct control_source sources[STACKTAP_MAX_SOURCES];
	struct control_filter filter = { 0 };
	struct config lasting = *config;
	uint32_t budget_ns, permille;
	size_t count;
	int ret;

	if (config->window_max_seconds < config->window_seconds)
		return fail_invalid(error, error_size,
				    "window_max_seconds must not be less than window_seconds");
	if (config->budget_ns && config_budget(config, &budget_ns) < 0)
		return fail_invalid(error, error_size,
				    "budget_ns must be a number of ns below 2^32, or empty for the "
				    "module's default, not `%s'", config->budget_ns);
	if (config->ceiling && !percent_parse(config->ceiling, &permille))
		return fail_invalid(error, error_size,
				    "ceiling must be a percentage from 0 to 100 with at most one "
				    "decimal, or empty for the module's ceiling alone, not `%s'", config->ceiling);
	if (config->kernel_suffix && strlen(config->kernel_suffix) >= ENCODE_MAX_SUFFIX)
		return fail_invalid(error, error_size, "kernel_suffix may have at most %d bytes",
				    ENCODE_MAX_SUFFIX - 1);
	if (config->user_only && config->kernel_only)
		return fail_invalid(error, error_size,
				    "user_only and kernel_only exclude each other");
	if (config->ring_bytes & (config->ring_bytes - 1) ||
	    config->sideband_bytes & (config->sideband_bytes - 1))
		return fail_invalid(error, error_size,
				    "ring_bytes and sideband_bytes must be powers of two");
	if (config->slice_bytes % 8 || config->slice_max_bytes % 8)
		return fail_invalid(error, error_size,
				    "slice_bytes and slice_max_bytes must be multiples of 8");
	if (config->slice_max_bytes && config->slice_max_bytes < STACKTAP_MIN_SLICE_BYTES)
		return fail_invalid(error, error_size, "slice_max_bytes must be 0 or at least %d",
				    STACKTAP_MIN_SLICE_BYTES);
	if (config->endpoint && !environment_is_url(config->endpoint))
		return fail_invalid(error, error_size,
				    "endpoint must begin with http://, https:// or unix:/");
	if (config->push_endpoint && !environment_is_url(config->push_endpoint))
		return fail_invalid(error, error_size,
				    "push_endpoint must begin with http://, https:// or unix:/");
	if (check_directories(config, error, error_size) < 0)
		return -EINVAL;
	for (size_t i = 0; i < config->receiver_count; i++)
		if (receiver_check(&config->receivers[i], error, error_size) < 0)
			return -EINVAL;
	if (config->attributes &&
	    !environment_is_pairs(config->attributes))
		return fail_invalid(error, error_size,
				    "attributes are not of the form key=value,key=value");
	if (config->headers && !environment_is_pairs(config->headers))
		return fail_invalid(error, error_size,
				    "headers are not of the form key=value,key=value");
	if (config->push_headers && !environment_is_pairs(config->push_headers))
		return fail_invalid(error, error_size,
				    "push_headers are not of the form key=value,key=value");
	if (config->debuginfod && debuginfod_check_url(config->debuginfod) < 0)
		return fail_invalid(error, error_size,
				    "debuginfod must be a URL like https://debuginfod.example, not "
				    "`%s'", config->debuginfod);
	if (config->metrics_listen && endpoint_check(config->metrics_listen, error, error_size) < 0)
		return -EINVAL;
	if (config->serve_listen && endpoint_check(config->serve_listen, error, error_size) < 0)
		return -EINVAL;
	ret = config_sources(config, sources, &count, error, error_size);
	if (ret < 0)
		return ret;
	/* cgroups come and go; whoever puts the filter in force opens them */
	lasting.cgroups = NULL;
	ret = config_filter(&lasting, &filter, error, error_size);
	control_filter_done(&filter);
	return ret;
}

static bool same_rules(const struct config *a, const struct config *b)
{
	if (a->rule_count != b->rule_count)
		return false;
	for (size_t i = 0; i < a->rule_count; i++)
		if (strcmp(a->rules[i], b->rules[i]) != 0)
			return false;
	return true;
}

static bool same_events(const struct config *a, const struct config *b)
{
	if (a->event_count != b->event_count)
		return false;
	for (size_t i = 0; i < a->event_count; i++)
		if (strcmp(a->events[i], b->events[i]) != 0)
			return false;
	return true;
}

static bool same_receivers(const struct config *a, const struct config *b)
{
	if (a->receiver_count != b->receiver_count)
		return false;
	for (size_t i = 0; i < a->receiver_count; i++)
		if (!receiver_same(&a->receivers[i], &b->receivers[i]))
			return false;
	return true;
}

static bool same_option(const struct config *a, const struct config *b,
			const struct option *option)
{
	switch (option->kind) {
	case OPTION_EVENT:
		return same_events(a, b);
	case OPTION_RULE:
		return same_rules(a, b);
	default:
		return option_same(option, a, b);
	}
}

static bool is_named(const struct option *option, const char *section, const char *name)
{
	return !strcmp(option->section, section) && (!name || !strcmp(option->name, name));
}

bool config_same(const struct config *a, const struct config *b, const char *section,
		 const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (is_named(&options[i], section, name) && !same_option(a, b, &options[i]))
			return false;
	return strcmp(section, CONFIG_DESTINATIONS) || same_receivers(a, b);
}

static void swap_option(struct config *a, struct config *b, const struct option *option)
{
	switch (option->kind) {
	case OPTION_EVENT:
		swap_bytes(a->events, b->events, sizeof(a->events));
		swap_bytes(&a->event_count, &b->event_count, sizeof(a->event_count));
		break;
	case OPTION_RULE:
		swap_bytes(a->rules, b->rules, sizeof(a->rules));
		swap_bytes(&a->rule_count, &b->rule_count, sizeof(a->rule_count));
		break;
	default:
		option_swap(option, a, b);
	}
}

void config_swap(struct config *a, struct config *b, const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (is_named(&options[i], section, name))
			swap_option(a, b, &options[i]);
	if (!strcmp(section, CONFIG_DESTINATIONS)) {
		swap_bytes(a->receivers, b->receivers, sizeof(a->receivers));
		swap_bytes(&a->receiver_count, &b->receiver_count, sizeof(a->receiver_count));
	}
}

static void dump_option(const struct config *config, const struct option *option, FILE *stream)
{
	switch (option->kind) {
	case OPTION_EVENT:
		for (size_t i = 0; i < config->event_count; i++)
			fprintf(stream, "event = %s\n", config->events[i]);
		break;
	case OPTION_RULE:
		for (size_t i = 0; i < config->rule_count; i++)
			fprintf(stream, "rule = %s\n", config->rules[i]);
		if (!config->rule_count)
			fprintf(stream, "rule =\n");
		break;
	default:
		option_dump(option, config, stream);
	}
}

void config_dump(const struct config *config, FILE *stream)
{
	const char *section = "";

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (strcmp(section, options[i].section) != 0)
			fprintf(stream, "%s[%s]\n", *section ? "\n" : "", options[i].section);
		section = options[i].section;
		dump_option(config, &options[i], stream);
	}
	for (size_t i = 0; i < config->receiver_count; i++) {
		fputc('\n', stream);
		receiver_dump(&config->receivers[i], stream);
	}
}
