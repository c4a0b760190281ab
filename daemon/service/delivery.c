// SPDX-License-Identifier: Apache-2.0
#include "service/delivery.h"

#include <string.h>

enum {
	MS_PER_S = 1000,
	MS_PER_HOUR = 3600 * MS_PER_S,
	/* of which JSON makes up to five times that */
	JSON_PAYLOAD_BYTES = 512 << 10,
};

static bool same_form(const struct encode_form *a, const struct encode_form *b)
{
	return a->names_ranges == b->names_ranges && a->repeats_functions == b->repeats_functions &&
	       a->max_bytes == b->max_bytes && !strcmp(a->kernel_suffix ?: "", b->kernel_suffix ?: "");
}

/* Which form a destination gets; each is encoded once for all that want it. */
static unsigned int add_form(struct delivery *delivery, const struct encode_form *form)
{
	unsigned int i = 0;

	while (i < delivery->form_count && !same_form(&delivery->forms[i], form))
		i++;
	if (i == delivery->form_count)
		delivery->forms[delivery->form_count++] = *form;
	return i;
}

static struct destination_options *add(struct delivery *delivery, const struct encode_form *usual,
				       enum protocol protocol)
{
	struct destination_options *destination = &delivery->destinations[delivery->exporter.destination_count++];
	struct encode_form form = *usual;

	if (protocol == PROTOCOL_HTTP_JSON)
		form.max_bytes = JSON_PAYLOAD_BYTES;
	destination->form = add_form(delivery, &form);
	return destination;
}

/* The receiver of [export], of which the environment may say otherwise. */
static int add_default(struct delivery *delivery, const struct config *config, const struct encode_form *form)
{
	const struct environment *environment = &delivery->environment;
	const enum protocol protocol = environment->has_protocol ? environment->protocol : config->protocol;
	const bool is_grpc = protocol == PROTOCOL_GRPC;
	const char *endpoint = is_grpc ? environment->grpc_endpoint : environment->endpoint;
	struct destination_options *destination;

	if (!endpoint && config->endpoint) {
		endpoint = delivery->urls[0] = environment_signal_url(config->endpoint, &otlp_profiles, is_grpc);
		if (!endpoint)
			return -ENOMEM;
	}
	if (!endpoint)
		return 0;
	destination = add(delivery, form, protocol);
	destination->name = config->receiver_count ? "export" : "";
	destination->http = (struct http_options){
		.endpoint = endpoint,
		.protocol = protocol,
		.headers = environment->headers ?: config->headers,
		.headers_file = config->headers_file,
		.certificate = environment->certificate ?: config->certificate,
		.client_certificate = environment->client_certificate ?: config->client_certificate,
		.client_key = environment->client_key ?: config->client_key,
	};
	destination->compression = environment->has_compression ? environment->compression : config->compression;
	destination->timeout_ms = environment->timeout_ms ?: (unsigned int)config->timeout_seconds * MS_PER_S;
	destination->spool_directory = config->spool_directory;
	destination->spool_max_bytes = config->spool_max_bytes;
	destination->spool_max_age_ms = config->spool_max_age_hours * MS_PER_HOUR;
	return 0;
}

static int add_receiver(struct delivery *delivery, const struct receiver *receiver, const struct encode_form *usual)
{
	const struct encode_form form = {
		.names_ranges = receiver->unnamed == UNNAMED_AS_PROFILE ? usual->names_ranges :
									  receiver->unnamed == UNNAMED_RANGE,
		.repeats_functions = receiver->repeats == REPEATS_AS_PROFILE ? usual->repeats_functions :
									       receiver->repeats == REPEATS_FUNCTIONS,
		.kernel_suffix = receiver->kernel_suffix ?: usual->kernel_suffix,
	};
	struct destination_options *destination = add(delivery, &form, receiver->protocol);
	char **url = &delivery->urls[delivery->exporter.destination_count - 1];

	free(*url);
	*url = environment_signal_url(receiver->endpoint, &otlp_profiles, receiver->protocol == PROTOCOL_GRPC);
	destination->name = receiver->name;
	destination->http = (struct http_options){
		.endpoint = *url,
		.protocol = receiver->protocol,
		.headers = receiver->headers,
		.headers_file = receiver->headers_file,
		.certificate = receiver->certificate,
		.client_certificate = receiver->client_certificate,
		.client_key = receiver->client_key,
	};
	destination->compression = receiver->compression;
	destination->timeout_ms = (unsigned int)receiver->timeout_seconds * MS_PER_S;
	destination->spool_directory = receiver->spool_directory;
	destination->spool_max_bytes = receiver->spool_max_bytes;
	destination->spool_max_age_ms = receiver->spool_max_age_hours * MS_PER_HOUR;
	return *url ? 0 : -ENOMEM;
}

static int add_all(struct delivery *delivery, const struct config *config, const struct encode_form *form)
{
	int err = delivery->environment.is_disabled ? 0 : add_default(delivery, config, form);

	_Static_assert(CONFIG_MAX_RECEIVERS + 1 == EXPORTER_DESTINATIONS, "and the one of [export]");
	for (size_t i = 0; !err && i < config->receiver_count && !delivery->environment.is_disabled; i++)
		err = add_receiver(delivery, &config->receivers[i], form);
	/* the journal has but one form for all; that of a single one may change while the exporter stays */
	for (size_t i = 0; i < delivery->exporter.destination_count && config->receiver_count; i++)
		delivery->destinations[i].recovered_form = &delivery->forms[delivery->destinations[i].form];
	return err;
}

int delivery_init(struct delivery *delivery, const struct config *config, char *error, size_t error_size)
{
	const struct encode_form form = {
		.names_ranges = config->names_ranges, .repeats_functions = config->repeats_functions,
		.kernel_suffix = config->kernel_suffix,
	};
	bool has_receiver;
	int err;

	*delivery = (struct delivery){ 0 };
	err = environment_load(&delivery->environment, error, error_size);
	if (err < 0)
		return err;
	err = add_all(delivery, config, &form);
	if (err < 0)
		snprintf(error, error_size, "out of memory");
	has_receiver = delivery->exporter.destination_count;
	if (!has_receiver)
		add_form(delivery, &form);
	delivery->exporter.destinations = delivery->destinations;
	delivery->exporter.form_count = (unsigned int)delivery->form_count;
	delivery->exporter.store_directory = has_receiver ? NULL : config->store_directory;
	delivery->exporter.store_max_bytes = config->store_max_bytes;
	delivery->exporter.store_max_age_ms = config->store_max_age_hours * MS_PER_HOUR;
	delivery->exporter.with_journal = config->with_journal;
	if (!err && !has_receiver && !config->store_directory) {
		snprintf(error, error_size, "no destination for profiles: set endpoint in "
			 "[export], OTEL_EXPORTER_OTLP_ENDPOINT, or directory in [store]");
		err = -EINVAL;
	}
	if (err < 0)
		delivery_done(delivery);
	return err;
}

void delivery_done(struct delivery *delivery)
{
	environment_free(&delivery->environment);
	for (size_t i = 0; i < ARRAY_SIZE(delivery->urls); i++)
		free(delivery->urls[i]);
	*delivery = (struct delivery){ 0 };
}

bool delivery_has_journal(const struct delivery *delivery)
{
	const struct exporter_options *options = &delivery->exporter;
	bool has_directory = options->store_directory;

	for (size_t i = 0; i < options->destination_count; i++)
		has_directory |= (bool)options->destinations[i].spool_directory;
	return options->with_journal && has_directory;
}

/* What it is made of and whose strings it borrows. */
static const char *const sections[] = { "export", CONFIG_DESTINATIONS, "store", "spool" };

bool delivery_same(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!config_same(a, b, sections[i], NULL))
			return false;
	/* which forms there are, and which destination has which */
	return !a->receiver_count || (config_same(a, b, "profile", "unnamed") &&
				      config_same(a, b, "profile", "repeat_functions") &&
				      config_same(a, b, "profile", "kernel_suffix"));
}

void delivery_swap(struct config *a, struct config *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		config_swap(a, b, sections[i], NULL);
	/* forms of several destinations borrow it */
	if (a->receiver_count)
		config_swap(a, b, "profile", "kernel_suffix");
}

void delivery_take_form(struct delivery *delivery, const struct config *config)
{
	if (config->receiver_count)
		return;
	delivery->forms[0].names_ranges = config->names_ranges;
	delivery->forms[0].repeats_functions = config->repeats_functions;
	delivery->forms[0].kernel_suffix = config->kernel_suffix;
}
