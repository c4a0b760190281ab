// SPDX-License-Identifier: Apache-2.0
#include "service/service.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/draw.h"
#include "base/log.h"
#include "base/percent.h"
#include "base/sha256.h"
#include "base/signal.h"
#include "service/delivery.h"
#include "service/host.h"
#include "service/keeper.h"
#include "client/kmodload.h"
#include "stacktap/version.h"

enum {
	MS_PER_S = 1000,
	/* below the 4 MiB that receivers of any kind take by default */
	MAX_PAYLOAD_BYTES = 3584 * 1024,
};

struct service {
	struct config config;
	struct delivery delivery;
	struct exporter *exporter;
	unsigned int exporters;		/* that were opened */

	/* the running pipeline's, which borrows them */
	char debuginfod_directory[PATH_MAX], index_directory[PATH_MAX];
	struct host_resource resource;
	struct relabel *relabel;
	struct pipeline_options options;
	struct pipeline *pipeline;
	struct pause pause;
	struct kept_fds kept;		/* for the first pipeline */

	struct taps taps;
};

static int sink_payload(void *ctx, struct payload *payload)
{
	struct service *service = ctx;

	/* other forms are the same samples */
	if (!payload->form)
		taps_put(&service->taps, payload->data, payload->size);
	return exporter_send(service->exporter, payload);
}

static void sink_done(void *ctx, uint64_t window)
{
	const struct service *service = ctx;

	exporter_window_done(service->exporter, window);
}

static void say_loading(uint64_t done, uint64_t total)
{
	log_info("unwind tables: %" PRIu64 " of %" PRIu64 " processes are ready", done, total);
}

static int sink_journal(void *ctx, const struct cut *cut, const uint8_t *data, size_t size)
{
	const struct service *service = ctx;

	return exporter_journal(service->exporter, cut, data, size);
}

static uint64_t sink_journal_room(void *ctx)
{
	const struct service *service = ctx;

	return exporter_journal_room(service->exporter);
}

static bool sink_is_behind(void *ctx)
{
	const struct service *service = ctx;

	return exporter_is_behind(service->exporter);
}

static int sink_poll(void *ctx)
{
	const struct service *service = ctx;

	return exporter_poll(service->exporter);
}

static int open_exporter(struct service *service, char *error, size_t error_size)
{
	struct delivery *delivery = &service->delivery;
	int ret;

	ret = delivery_init(delivery, &service->config, error, error_size);
	if (ret < 0)
		return ret;
	ret = exporter_new(&delivery->exporter, &service->exporter);
	service->exporters += !ret;
	if (ret < 0) {
		snprintf(error, error_size, "cannot export to %s%s: %s",
			 service_endpoint(service) ?: delivery->exporter.store_directory,
			 delivery->exporter.destination_count > 1 ? " and others" : "", strerror(-ret));
		delivery_done(delivery);
	}
	return ret;
}

static void close_exporter(struct service *service)
{
	if (!service->exporter)
		return;
	exporter_stop(service->exporter, (unsigned int)service->config.stop_seconds * MS_PER_S);
	exporter_free(service->exporter);
	service->exporter = NULL;
	delivery_done(&service->delivery);
}

static void sink_keep(void *ctx _unused_, int session, int ledger)
{
	keeper_keep(session, ledger);
}

/* What a session was made for: the whole configuration, as others may be sampled, or be left out, by another. */
static uint64_t purpose_of(const struct config *config)
{
	_cleanup_free_ char *text = NULL;
	uint8_t digest[SHA256_BYTES];
	uint64_t purpose;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return 0;
	fputs(STACKTAP_VERSION "\n", stream);
	config_dump(config, stream);
	if (fclose(stream) == EOF)
		return 0;
	sha256_of(&(struct sha256_part){ text, size }, 1, digest);
	memcpy(&purpose, digest, sizeof(purpose));
	return purpose;
}

static void close_pipeline(struct service *service)
{
	int ret;

	if (service->pipeline) {
		ret = pipeline_stop(service->pipeline);
		if (ret < 0)
			log_warning("sampling did not end cleanly: %s", strerror(-ret));
		pipeline_free(service->pipeline);
		service->pipeline = NULL;
	}
	keeper_forget(&service->kept);
	host_resource_done(&service->resource);
	relabel_free(service->relabel);
	service->relabel = NULL;
}

/* @named, else @name below the service manager's; NULL: there is none. */
static const char *cache_directory(const char *named, const char *name, char path[static PATH_MAX])
{
	const char *cache = getenv("CACHE_DIRECTORY");	/* systemd's */

	if (named || !cache)
		return named;
	snprintf(path, PATH_MAX, "%s/%s", cache, name);
	return path;
}

/* @filter is only looked at before this returns. */
static int open_pipeline(struct service *service, const struct control_filter *filter,
			 char *error, size_t error_size)
{
	const struct config *config = &service->config;
	const struct environment *environment = &service->delivery.environment;
	struct pipeline_options *options = &service->options;
	int ret;

	delivery_take_form(&service->delivery, config);
	*options = (struct pipeline_options){
		.capture = {
			.ring_bytes = (uint32_t)config->ring_bytes,
			.sideband_bytes = (uint32_t)config->sideband_bytes,
			.is_kept = keeper_is_there(),
			.purpose = purpose_of(config),
		},
		.symbolizer = {
			.with_command_line = config->with_command_line,
			.with_kernel_addresses = config->with_kernel_addresses,
			.names_ms = (unsigned int)config->names_seconds * 1000,
			.with_lines = config->with_lines,
			.indices = {
				.directory = cache_directory(config->index_directory, "dwarf-index", service->index_directory),
				.limit_bytes = config->index_max_bytes,
			},
			.debuginfod = {
				.url = config->debuginfod,
				.directory = cache_directory(config->debuginfod_directory, "debuginfod",
							     service->debuginfod_directory),
				.cache_bytes = config->debuginfod_max_bytes,
				.file_bytes = config->debuginfod_file_bytes,
				.seconds = (uint32_t)config->debuginfod_seconds,
			},
			.sysroot = "",
		},
		.encode = {
			.max_bytes = MAX_PAYLOAD_BYTES,
			.rounds_times = !config->with_exact_times,
			.form = service->delivery.forms[0],
			.service_name = environment->service_name ? environment->service_name :
								    config->service_name,
		},
		.other_forms = service->delivery.forms + 1,
		.other_form_count = service->delivery.form_count - 1,
		.user_frames = (uint32_t)config->max_stack,
		.with_tables = config->with_tables,
		.slice_bytes = config->with_deferred ? (uint32_t)config->slice_bytes : 0,
		.slice_max_bytes = (uint32_t)config->slice_max_bytes,
		.fault_in = config->fault_in,
		.is_held = service->pause.reason,
		.table_cache = getenv("CACHE_DIRECTORY"),	/* systemd's */
		.loading = say_loading,
		.is_cancelled = signal_wants_end,
		.kept = &service->kept,
		.keep = sink_keep,
		.window_ms = (unsigned int)config->window_seconds * MS_PER_S,
		.window_max_ms = (unsigned int)config->window_max_seconds * MS_PER_S,
		/* hosts that a fleet tool started together send at times of their own */
		.early_ms = draw_below((unsigned int)config->window_max_seconds * MS_PER_S),
		.sink = { .payload = sink_payload, .done = sink_done, .poll = sink_poll,
			  .is_behind = sink_is_behind, .ctx = service,
			  .journal = delivery_has_journal(&service->delivery) ? sink_journal : NULL,
			  .journal_room = sink_journal_room },
	};
	options->has_budget = !config_budget(config, &options->budget_ns);
	options->has_ceiling = config->ceiling && percent_parse(config->ceiling,
								&options->ceiling_permille);
	ret = config_sources(config, options->sources, &options->source_count, error, error_size);
	if (ret < 0)
		return ret;
	ret = host_resource_load(environment, config->attributes, &service->resource, error,
				 error_size);
	if (!ret)
		ret = config_relabel(config, &service->relabel, error, error_size);
	if (ret < 0) {
		close_pipeline(service);
		return ret;
	}
	service->kept.purpose = options->capture.purpose;
	options->encode.resource = service->resource.attributes;
	options->encode.resource_count = service->resource.count;
	options->encode.relabel = service->relabel;
	options->filter = filter;
	ret = pipeline_start(options, &service->pipeline, error, error_size);
	if ((ret == -EDQUOT || ret == -ENOMEM) && service->kept.session >= 0) {
		log_warning("%s: the session of a daemon that was killed is closed to make room", error);
		keeper_forget(&service->kept);
		ret = pipeline_start(options, &service->pipeline, error, error_size);
	}
	options->filter = NULL;
	if (ret < 0)
		close_pipeline(service);
	return ret;
}

static enum pause_reason wanted_pause(struct service *service)
{
	return pause_wanted(&service->pause, service->config.kill_switch, service->config.duty_percent,
			    clock_read(CLOCK_REALTIME) / NSEC_PER_SEC);
}

int service_look(struct service *service, char *ret_error, size_t error_size)
{
	const enum pause_reason reason = wanted_pause(service);
	int ret;

	if (reason == service->pause.reason || !service->pipeline)
		return 0;
	ret = pipeline_hold(service->pipeline, reason);
	if (ret < 0) {
		snprintf(ret_error, error_size, "the module cannot %s sampling: %s", reason ? "stop" : "start",
			 strerror(-ret));
		return ret;
	}
	pause_set(&service->pause, reason, clock_monotonic());
	return 0;
}

enum pause_reason service_pause(const struct service *service, struct pause_stats *ret_stats)
{
	*ret_stats = pause_stats(&service->pause, clock_monotonic());
	return service->pause.reason;
}

int service_start(struct config *config, struct kept_fds *kept, struct service **ret_service, char *ret_error,
		  size_t error_size)
{
	_cleanup_(control_filter_done) struct control_filter filter = { 0 };
	struct service *service = calloc(1, sizeof(*service));
	int ret;

	if (!service) {
		snprintf(ret_error, error_size, "out of memory");
		config_done(config);
		return -ENOMEM;
	}
	pthread_mutex_init(&service->taps.lock, NULL);
	service->config = *config;
	*config = (struct config){ 0 };
	service->kept = *kept;
	*kept = (struct kept_fds){ .session = -1, .ledger = -1 };
	pause_init(&service->pause);
	pause_set(&service->pause, wanted_pause(service), clock_monotonic());
	/* what must not be sampled now was not to be sampled meanwhile */
	if (service->pause.reason == PAUSE_KILL_SWITCH || service->pause.reason == PAUSE_UNKNOWN)
		keeper_forget(&service->kept);
	ret = config_filter(&service->config, &filter, ret_error, error_size);
	if (ret < 0)
		goto err_service;
	if (service->config.load_module) {
		ret = kmodload_load(ret_error, error_size);
		if (ret < 0)
			goto err_service;
	}
	ret = open_exporter(service, ret_error, error_size);
	if (ret < 0)
		goto err_service;
	ret = open_pipeline(service, &filter, ret_error, error_size);
	if (ret < 0)
		goto err_service;
	*ret_service = service;
	return 0;

err_service:
	service_free(service);
	return ret;
}

void service_stop(struct service *service)
{
	close_pipeline(service);
	close_exporter(service);
}

void service_free(struct service *service)
{
	if (!service)
		return;
	service_stop(service);
	config_done(&service->config);
	pthread_mutex_destroy(&service->taps.lock);
	free(service);
}

/* What control messages alone can change, or what nothing that runs was made from. */
static void swap_live(struct config *a, struct config *b)
{
	config_swap(a, b, "profile", "rate");
	config_swap(a, b, "profile", "period");
	config_swap(a, b, "filter", NULL);
	config_swap(a, b, "metrics", NULL);
	config_swap(a, b, "fleet", NULL);
	config_swap(a, b, "serve", NULL);
	config_swap(a, b, "daemon", NULL);
}

static bool is_live_change(const struct config *old, const struct config *new)
{
	static const char *const sections[] = { "profile", "capture", "unwind", "export",
						CONFIG_DESTINATIONS, "store", "spool", "resource", "relabel", "privacy",
						"symbols" };
	/* shallow copies: the old one with what can change exchanged for the new one's */
	struct config changed = *old, donor = *new;

	swap_live(&changed, &donor);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!config_same(&changed, new, sections[i], NULL))
			return false;
	return true;
}

static int set_rates(const struct service *service, struct control *control,
		     const struct config *config)
{
	struct control_source sources[STACKTAP_MAX_SOURCES];
	char error[256];
	size_t count;
	int ret;

	ret = config_sources(config, sources, &count, error, sizeof(error));
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = control_set_rate(control, service_session_id(service), i, sources[i].rate_hz,
				       sources[i].period);
	return ret;
}

/*
 * The filter, NULL: it stays, comes last: the module takes all of it or nothing, so none has to be
 * put back, which could not be done once a cgroup of it is removed.
 */
static int change_live(struct service *service, const struct config *config,
		       const struct control_filter *filter, char *error, size_t error_size)
{
	const struct config *old = &service->config;
	const bool has_rate = !config_same(old, config, "profile", "rate") ||
			      !config_same(old, config, "profile", "period");
	const struct control_change change = { .filter = filter };
	struct control *control;
	int ret, again;

	if (!has_rate && !filter)
		return 0;
	ret = control_open(&control);
	if (ret < 0) {
		snprintf(error, error_size, "cannot reach the module: %s", strerror(-ret));
		return ret;
	}
	if (has_rate)
		ret = set_rates(service, control, config);
	if (!ret && filter)
		ret = control_set_session(control, service_session_id(service), &change);
	if (ret < 0)
		snprintf(error, error_size, "the module refuses the change: %s",
			 *control_error(control) ? control_error(control) : strerror(-ret));
	if (ret < 0 && has_rate) {
		/* some sources may have the new one */
		again = set_rates(service, control, old);
		if (again < 0)
			log_warning("not every source got its old rate back: %s", strerror(-again));
	}
	control_close(control);
	return ret;
}

static int reload_live(struct service *service, struct config *config,
		       const struct control_filter *filter, char *error, size_t error_size)
{
	int ret = change_live(service, config, filter, error, error_size);

	/* the rest stays where it is: exporter and pipeline borrow its strings */
	if (!ret) {
		swap_live(&service->config, config);
		pipeline_set_purpose(service->pipeline, purpose_of(&service->config));
	}
	return ret;
}

/* Start what service->config says, the pipeline being closed. */
static int restart(struct service *service, bool with_exporter,
		   const struct control_filter *filter, char *error, size_t error_size)
{
	int ret = 0;

	if (with_exporter || !service->exporter) {
		close_exporter(service);
		ret = open_exporter(service, error, error_size);
	}
	return ret < 0 ? ret : open_pipeline(service, filter, error, error_size);
}

static int reload_all(struct service *service, struct config *config,
		      const struct control_filter *filter, char *error, size_t error_size)
{
	_cleanup_(control_filter_done) struct control_filter old_filter = { 0 };
	bool with_exporter = !delivery_same(&service->config, config);
	struct config other = service->config;
	char again[256];
	int ret;

	close_pipeline(service);
	service->config = *config;
	*config = other;
	/* equal, but the exporter borrows the old ones' strings */
	if (!with_exporter)
		delivery_swap(&service->config, config);
	ret = restart(service, with_exporter, filter, error, error_size);
	if (!ret)
		return 0;
	other = service->config;
	service->config = *config;
	*config = other;
	if (!with_exporter)
		delivery_swap(&service->config, config);
	if (config_filter(&service->config, &old_filter, again, sizeof(again)) < 0 ||
	    restart(service, with_exporter, &old_filter, again, sizeof(again)) < 0)
		return -ESHUTDOWN;
	return ret;
}

int service_reload(struct service *service, struct config *config, char *ret_error,
		   size_t error_size)
{
	_cleanup_(control_filter_done) struct control_filter filter = { 0 };
	const bool is_live = is_live_change(&service->config, config);
	const bool is_new = !config_same(&service->config, config, "filter", NULL);
	/* what a name stands for may be another user or cgroup by now */
	const bool has_names = config->users || config->cgroups;
	int ret;

	ret = config_filter(config, &filter, ret_error, error_size);
	if (ret < 0 && is_live && !is_new) {
		log_warning("%s; the filter stays as it is", ret_error);
		ret = reload_live(service, config, NULL, ret_error, error_size);
	} else if (!ret && is_live) {
		ret = reload_live(service, config, is_new || has_names ? &filter : NULL, ret_error,
				  error_size);
	} else if (!ret) {
		ret = reload_all(service, config, &filter, ret_error, error_size);
	}
	config_done(config);
	return ret;
}

const struct config *service_config(const struct service *service)
{
	return &service->config;
}

uint64_t service_session_id(const struct service *service)
{
	return service->pipeline ? pipeline_session_id(service->pipeline) : 0;
}

const char *service_endpoint(const struct service *service)
{
	return service->delivery.destinations[0].http.endpoint;
}

const char *service_store(const struct service *service)
{
	return service->delivery.exporter.store_directory;
}

const char *service_spool(const struct service *service)
{
	const struct destination_options *first = &service->delivery.destinations[0];

	return first->http.endpoint ? first->spool_directory : NULL;
}

const struct destination_options *service_destinations(const struct service *service, size_t *ret_count)
{
	*ret_count = service->delivery.exporter.destination_count;
	return service->delivery.destinations;
}

unsigned int service_exporters(const struct service *service)
{
	return service->exporters;
}

const struct relabel *service_relabel(const struct service *service)
{
	return service->relabel;
}

struct taps *service_taps(struct service *service)
{
	return &service->taps;
}

int service_close_window(struct service *service, uint64_t *ret_closing)
{
	if (!service->pipeline)
		return -ENODEV;
	*ret_closing = pipeline_close_window(service->pipeline);
	return 0;
}

bool service_has_closed(struct service *service, uint64_t closing)
{
	return !service->pipeline || pipeline_has_closed(service->pipeline, closing);
}

void service_stats(struct service *service, struct pipeline_stats *ret_pipeline,
		   struct exporter_stats *ret_exporter)
{
	*ret_pipeline = (struct pipeline_stats){ 0 };
	*ret_exporter = (struct exporter_stats){ 0 };
	if (service->pipeline)
		pipeline_stats(service->pipeline, ret_pipeline);
	if (service->exporter)
		exporter_stats(service->exporter, ret_exporter);
}
