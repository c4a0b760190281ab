// SPDX-License-Identifier: Apache-2.0
#include "cli/filter.h"

#include "cli/cli.h"

/* What a function of client/filter.h returned with a sentence. */
static int say(int ret, const char *error)
{
	if (ret == -EINVAL)
		return cli_usage_error("%s", error);
	return ret < 0 ? cli_error("%s", error) : CLI_OK;
}

int filter_option(struct control_filter *filter, int option, const char *argument)
{
	char error[512];

	switch (option) {
	case 'C':
		free(filter->cpus);
		filter->cpus = NULL;
		return cli_parse_cpus(argument, &filter->cpus, &filter->cpu_words);
	case 'p':
		return cli_parse_pids(argument, "process", &filter->tgids, &filter->tgid_count);
	case 't':
		return cli_parse_pids(argument, "thread", &filter->tids, &filter->tid_count);
	case 'u':
		return say(control_filter_add_users(filter, argument, error, sizeof(error)), error);
	case 'G':
		return say(control_filter_add_cgroups(filter, argument, error, sizeof(error)),
			   error);
	case FILTER_COMM:
		return say(control_filter_add_comms(filter, argument, error, sizeof(error)), error);
	case FILTER_USER_ONLY:
		filter->flags |= STACKTAP_FILTER_USER_ONLY;
		return CLI_OK;
	case FILTER_KERNEL_ONLY:
		filter->flags |= STACKTAP_FILTER_KERNEL_ONLY;
		return CLI_OK;
	case FILTER_EXCLUDE_IDLE:
		filter->flags |= STACKTAP_FILTER_EXCLUDE_IDLE;
		return CLI_OK;
	default:
		return CLI_GO_ON;
	}
}

int filter_check(const struct control_filter *filter)
{
	const uint32_t modes = STACKTAP_FILTER_USER_ONLY | STACKTAP_FILTER_KERNEL_ONLY;

	if ((filter->flags & modes) == modes)
		return cli_usage_error("--user-only and --kernel-only exclude each other");
	return CLI_OK;
}
