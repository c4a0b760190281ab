/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacktapd's configuration: an ini file, every option of which stacktap.conf(5) describes. OTEL_*
 * environment variables win over the file.
 */
#ifndef STACKTAP_SERVICE_CONFIG_H
#define STACKTAP_SERVICE_CONFIG_H

#include "base/log.h"
#include "client/netlink.h"
#include "export/environment.h"
#include "export/relabel.h"
#include "service/receiver.h"

#define CONFIG_PATH "/etc/stacktap/stacktap.conf"

#define CONFIG_DESTINATIONS "destination"	/* config_same()'s and config_swap()'s section of all of them */

enum { CONFIG_MAX_EVENT = 128, CONFIG_MAX_RECEIVERS = 7 };

struct config {
	/* [profile] */
	char events[STACKTAP_MAX_SOURCES][CONFIG_MAX_EVENT];
	size_t event_count;
	uint64_t rate_hz;
	uint64_t period;		/* 0: by rate */
	unsigned int is_frequency;	/* mode = frequency */
	bool with_jitter;
	uint64_t window_seconds, window_max_seconds;
	bool with_exact_times;
	uint64_t max_stack;
	unsigned int names_ranges;	/* unnamed = range */
	char *kernel_suffix;		/* NULL: none */
	bool repeats_functions;
	char *budget_ns;		/* NULL: the module's */
	char *ceiling;			/* percent; NULL: the module's alone */

	/* [filter] */
	char *cpus;			/* CPU list, NULL: all */
	char *users, *comms, *cgroups;	/* lists, NULL: all */
	bool user_only, kernel_only, exclude_idle;

	/* [capture] */
	uint64_t ring_bytes, sideband_bytes;

	/* [unwind] */
	bool with_tables;
	bool with_deferred;
	uint64_t slice_bytes, slice_max_bytes;
	bool fault_in;

	/* [export] */
	char *endpoint;			/* base URL; NULL: local store */
	unsigned int protocol;		/* enum protocol */
	char *headers, *headers_file, *certificate, *client_certificate, *client_key;
	unsigned int compression;	/* enum compression */
	uint64_t timeout_seconds;
	unsigned int wire_version;	/* there is one: OTLP_WIRE_VERSION */

	/* [destination NAME], beside that one */
	struct receiver receivers[CONFIG_MAX_RECEIVERS];
	size_t receiver_count;

	/* [store] */
	char *store_directory;		/* NULL: none */
	uint64_t store_max_bytes;
	uint64_t store_max_age_hours;	/* 0: no limit */

	/* [metrics] */
	char *metrics_listen;		/* NULL: nowhere */
	bool with_push;			/* to an OTLP receiver */
	char *push_endpoint;		/* base URL; NULL: that of [export] */
	char *push_headers;		/* as headers; NULL: those of [export], where the receiver is the same */
	uint64_t push_seconds;		/* between two requests */

	/* [spool] */
	char *serve_listen;		/* the same */
	char *spool_directory;		/* NULL: none */
	uint64_t spool_max_bytes;
	uint64_t spool_max_age_hours;	/* 0: no limit */
	bool with_journal;		/* of the open window, there or in the store */

	/* [resource] */
	char *service_name;
	char *attributes;		/* k=v,k=v */

	/* [relabel] */
	char *rules[RELABEL_MAX_RULES];
	size_t rule_count;

	/* [privacy] */
	bool with_command_line, with_kernel_addresses;

	/* [symbols] */
	uint64_t names_seconds;		/* that a window waits for its names */
	bool with_lines;
	char *index_directory;		/* NULL: below the service manager's */
	uint64_t index_max_bytes;	/* 0: no indices are kept */
	char *debuginfod;		/* URL; NULL: no server is asked */
	char *debuginfod_directory;	/* NULL: below the service manager's */
	uint64_t debuginfod_max_bytes, debuginfod_file_bytes, debuginfod_seconds;

	/* [fleet] */
	char *kill_switch;		/* NULL: none */
	uint64_t duty_percent;		/* of the minutes */
	bool with_watch;

	/* [daemon] */
	bool load_module;
	uint64_t log_level;		/* enum log_level */
	uint64_t status_seconds, stop_seconds;
};

void config_init(struct config *config);	/* the defaults */
void config_done(struct config *config);
/*
 * Read a file over the defaults. On failure *ret_config is untouched and @error has a sentence with
 * the file's line. -ENOENT when there is no such file.
 */
int config_load(const char *path, struct config *ret_config, char *error, size_t error_size);
/* Options that contradict each other, events that are unknown: -EINVAL and a sentence. */
int config_check(const struct config *config, char *error, size_t error_size);
/* Is the option of both the same? @name NULL: all of the section. */
bool config_same(const struct config *a, const struct config *b, const char *section,
		 const char *name);
/* Exchange the option's values, strings with their ownership. @name as above. */
void config_swap(struct config *a, struct config *b, const char *section, const char *name);
/* As a file that config_load() reads back to the same. */
void config_dump(const struct config *config, FILE *stream);

/* The sources and the filter that the options describe. */
int config_sources(const struct config *config, struct control_source *ret_sources,
		   size_t *ret_count, char *error, size_t error_size);
/* -ENOENT: the module's. */
int config_budget(const struct config *config, uint32_t *ret_ns);
/* *ret_relabel NULL: there are no rules. */
int config_relabel(const struct config *config, struct relabel **ret_relabel, char *error,
		   size_t error_size);
int config_filter(const struct config *config, struct control_filter *ret_filter, char *error,
		  size_t error_size);
/*
 * What [filter], [resource], [relabel] and [privacy] are for `stacktap record': arguments, NULL at their end, in one
 * block for the caller to free; NULL: no memory.
 */
char **config_record_arguments(const struct config *config);

#endif /* STACKTAP_SERVICE_CONFIG_H */
