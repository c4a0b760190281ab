// SPDX-License-Identifier: Apache-2.0
/* What a configuration's options are for the module and the exporter. */
#include <string.h>

#include "base/cpulist.h"
#include "base/fail.h"
#include "client/event.h"
#include "service/config.h"
#include "service/option.h"

int config_sources(const struct config *config, struct control_source *ret_sources,
		   size_t *ret_count, char *error, size_t error_size)
{
	for (size_t i = 0; i < config->event_count; i++) {
		struct control_source *source = &ret_sources[i];
		int ret = event_parse(config->events[i], source, error, error_size);

		if (ret < 0)
			return ret;
		source->id = (uint32_t)i;
		if (!config->with_jitter)
			source->flags |= STACKTAP_SRC_NO_JITTER;
		if (!source->rate_hz && !source->period) {
			source->period = config->period;
			source->rate_hz = config->period ? 0 : (uint32_t)config->rate_hz;
		}
		if (source->period)
			source->mode = STACKTAP_MODE_PERIOD;
		else if (config->is_frequency)
			source->mode = STACKTAP_MODE_FREQ;
		if (config->is_frequency && config->period)
			return fail_invalid(error, error_size,
					    "mode = frequency needs a rate, not a period");
	}
	*ret_count = config->event_count;
	return 0;
}

int config_relabel(const struct config *config, struct relabel **ret_relabel, char *error,
		   size_t error_size)
{
	struct relabel *relabel = NULL;
	int ret = config->rule_count ? relabel_new(&relabel) : 0;

	for (size_t i = 0; !ret && i < config->rule_count; i++)
		ret = relabel_add(relabel, config->rules[i], error, error_size);
	if (ret == -ENOMEM)
		snprintf(error, error_size, "out of memory");
	if (ret < 0) {
		relabel_free(relabel);
		return ret;
	}
	*ret_relabel = relabel;
	return 0;
}

int config_filter(const struct config *config, struct control_filter *ret_filter, char *error,
		  size_t error_size)
{
	_cleanup_(control_filter_done) struct control_filter filter = { 0 };
	int ret = 0;

	if (config->cpus) {
		struct cpulist list;

		if (cpulist_parse(config->cpus, &list) < 0 || !list.count)
			return fail_invalid(error, error_size, "cpus = %s is not a list like 0-3,7",
					    config->cpus);
		filter.cpus = list.words;
		filter.cpu_words = list.count;
	}
	if (config->users)
		ret = control_filter_add_users(&filter, config->users, error, error_size);
	if (!ret && config->comms)
		ret = control_filter_add_comms(&filter, config->comms, error, error_size);
	if (!ret && config->cgroups)
		ret = control_filter_add_cgroups(&filter, config->cgroups, error, error_size);
	/* whatever is not here is the option's fault, not the file's */
	if (ret < 0)
		return ret == -ENOMEM ? ret : -EINVAL;
	if (config->user_only)
		filter.flags |= STACKTAP_FILTER_USER_ONLY;
	if (config->kernel_only)
		filter.flags |= STACKTAP_FILTER_KERNEL_ONLY;
	if (config->exclude_idle)
		filter.flags |= STACKTAP_FILTER_EXCLUDE_IDLE;
	*ret_filter = filter;
	filter = (struct control_filter){ 0 };
	return 0;
}

/* Of the arguments as they are put together: first how large they are, then into the block. */
struct arguments {
	char **list;		/* NULL: counted alone */
	char *text;
	size_t count, bytes;
};

static void put(struct arguments *arguments, const char *option, const char *value)
{
	const size_t size = strlen(option) + strlen(value) + 1;

	if (arguments->list) {
		arguments->list[arguments->count] = arguments->text;
		snprintf(arguments->text, size, "%s%s", option, value);
		arguments->text += size;
	}
	arguments->count++;
	arguments->bytes += size;
}

static bool is_downsampling(const char *rule)
{
	static const char word[] = "downsample";

	return !strncmp(rule, word, sizeof(word) - 1);
}

static void put_all(struct arguments *arguments, const struct config *config)
{
	if (config->cpus)
		put(arguments, "--cpu=", config->cpus);
	if (config->users)
		put(arguments, "--uid=", config->users);
	if (config->comms)
		put(arguments, "--comm=", config->comms);
	if (config->cgroups)
		put(arguments, "--cgroup=", config->cgroups);
	if (config->user_only)
		put(arguments, "--user-only", "");
	if (config->kernel_only)
		put(arguments, "--kernel-only", "");
	if (config->exclude_idle)
		put(arguments, "--exclude-idle", "");
	if (config->service_name)
		put(arguments, "--service-name=", config->service_name);
	if (config->attributes)
		put(arguments, "--resource-attributes=", config->attributes);
	if (config->with_command_line)
		put(arguments, "--command-line", "");
	if (!config->with_kernel_addresses)
		put(arguments, "--no-kernel-addresses", "");
	/* who asks for a rate of his own wants the samples of it */
	for (size_t i = 0; i < config->rule_count; i++)
		if (!is_downsampling(config->rules[i]))
			put(arguments, "--relabel=", config->rules[i]);
}

char **config_record_arguments(const struct config *config)
{
	struct arguments arguments = { 0 };
	size_t list_bytes;
	char **list;

	put_all(&arguments, config);
	list_bytes = (arguments.count + 1) * sizeof(*list);
	list = calloc(1, list_bytes + arguments.bytes);
	if (!list)
		return NULL;
	arguments = (struct arguments){ .list = list, .text = (char *)list + list_bytes };
	put_all(&arguments, config);
	return list;
}
