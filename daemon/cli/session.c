// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "client/kmodload.h"

int session_refused(const struct control *control, const char *what, int error)
{
	const char *sentence = control_error(control);

	if (error == -EPERM)
		return cli_error("%s: permission denied: CAP_PERFMON or CAP_SYS_ADMIN is needed, "
				 "run it with sudo", what);
	if (*sentence)
		return cli_error("%s: %s", what, sentence);
	return cli_error("%s: %s", what, strerror(-error));
}

static int not_connected(int error)
{
	if (error != -ENODEV)
		return cli_error("cannot reach the kernel module stacktap: %s", strerror(-error));
	if (kmodload_is_loaded())
		return cli_error("the kernel module stacktap is loaded, but this network namespace "
				 "does not see it: run the command on the host itself");
	return cli_error("the kernel module stacktap is not loaded: run `modprobe stacktap'; if "
			 "there is none for this kernel, see `dkms status'");
}

int session_connect(struct control **ret_control, struct control_module *ret_module)
{
	_cleanup_(session_closep) struct control *control = NULL;
	struct control_module module;
	int ret;

	ret = control_open(&control);
	if (ret < 0)
		return not_connected(ret);
	ret = control_get_module(control, &module);
	if (ret < 0)
		return session_refused(control, "cannot read the module's version", ret);
	if (module.abi_major != STACKTAP_ABI_MAJOR)
		return cli_error("the loaded module (version %s) speaks ABI %u.%u, this program "
				 "%u.%u: install both from one version, then reload the module "
				 "(%s)", module.version, module.abi_major, module.abi_minor,
				 STACKTAP_ABI_MAJOR, STACKTAP_ABI_MINOR, KMODLOAD_RELOAD);
	if (ret_module)
		*ret_module = module;
	*ret_control = steal_ptr(control);
	return CLI_OK;
}

struct matches {
	const char *name;
	uint64_t id;		/* 0: by name */
	uint64_t ids[STACKTAP_MAX_SESSIONS];
	size_t count;
};

static int match_session(void *ctx, const struct control_session *session)
{
	struct matches *matches = ctx;

	if (matches->id ? session->id != matches->id :
			  strcmp(matches->name, "all") &&
				  strcmp(matches->name, session->owner_comm))
		return 0;
	if (matches->count == ARRAY_SIZE(matches->ids))
		return -EOVERFLOW;
	matches->ids[matches->count++] = session->id;
	return 0;
}

int session_each_named(struct control *control, const char *name,
		       int (*each)(void *ctx, struct control *control,
				   const struct control_session *session),
		       void *ctx)
{
	struct matches matches = { .name = name };
	int ret, result = CLI_OK;

	if (!cli_parse_number(name, 1, UINT64_MAX, &matches.id))
		matches.id = 0;
	ret = control_each_session(control, match_session, &matches);
	if (ret < 0)
		return session_refused(control, "cannot list sessions", ret);
	if (!matches.count && strcmp(name, "all") != 0)
		return cli_error("there is no session %s; `stacktap status' lists them", name);
	for (size_t i = 0; i < matches.count; i++) {
		struct control_session session;
		char what[64];

		ret = control_get_session(control, matches.ids[i], &session);
		if (ret < 0) {
			snprintf(what, sizeof(what), "session %" PRIu64, matches.ids[i]);
			result = session_refused(control, what, ret);
			continue;
		}
		if (each(ctx, control, &session) != CLI_OK)
			result = CLI_FAILED;
		control_filter_done(&session.filter);
	}
	return result;
}
