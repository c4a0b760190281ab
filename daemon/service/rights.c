// SPDX-License-Identifier: Apache-2.0
#include "service/rights.h"

#include <pwd.h>
#include <string.h>

#include "base/log.h"
#include "broker/broker.h"
#include "client/event.h"
#include "client/kmodload.h"
#include "service/broker_child.h"
#include "service/confine.h"
#include "service/ownership.h"
#include "service/statusfile.h"

enum { STATE_MODE = 0750, CACHE_MODE = 0700, RUNTIME_MODE = 0755 };

static bool is_below(const char *path, const char *directory)
{
	const size_t length = strlen(directory);

	return !strncmp(path, directory, length) && (!path[length] || path[length] == '/') && !strstr(path, "/..");
}

/* A directory that is named in the configuration may be anything. */
static int give(const struct ownership *ownership, const char *directory, mode_t mode, char *why, size_t size)
{
	return directory ? ownership_give(ownership, directory, mode, is_below(directory, "/var/lib/stacktap"), why,
					  size) : 0;
}

static int give_all(const struct ownership *ownership, const struct config *config, char *why, size_t size)
{
	const char *cache = getenv("CACHE_DIRECTORY");	/* systemd's */
	int err = ownership_give(ownership, STATUSFILE_DIRECTORY, RUNTIME_MODE, true, why, size);

	if (!err && cache)
		err = ownership_give(ownership, cache, CACHE_MODE, true, why, size);
	if (!err)
		err = give(ownership, config->store_directory, STATE_MODE, why, size);
	if (!err)
		err = give(ownership, config->spool_directory, STATE_MODE, why, size);
	for (size_t i = 0; i < config->receiver_count && !err; i++)
		err = give(ownership, config->receivers[i].spool_directory, STATE_MODE, why, size);
	if (!err)
		err = give(ownership, config->debuginfod_directory, CACHE_MODE, why, size);
	if (!err)
		err = give(ownership, config->index_directory, CACHE_MODE, why, size);
	return err;
}

static void note_user(struct rights *rights, uid_t uid)
{
	const struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(rights->user, sizeof(rights->user), "%s", entry->pw_name);
	else
		snprintf(rights->user, sizeof(rights->user), "%u", uid);
}

/* 0: it can be that user. -errno and why not: it has what it had. */
static int may_give_up(const struct config *config, struct ownership *ret_ownership, char *why, size_t size)
{
	const struct passwd *entry = getpwnam(STATUSFILE_USER);

	if (geteuid() != 0) {
		snprintf(why, size, "it was not started as root");
		return -EPERM;
	}
	if (!entry || !entry->pw_uid) {
		snprintf(why, size, "there is no user %s: create it, or run systemd-sysusers", STATUSFILE_USER);
		return -ENOENT;
	}
	if (!confine_may_change_user()) {
		snprintf(why, size, "it lacks CAP_SETUID or CAP_SETGID to become user %s: add them to the unit's "
			 "CapabilityBoundingSet=", STATUSFILE_USER);
		return -EPERM;
	}
	/* who stays root may be without CAP_DAC_OVERRIDE, and then needs what it has: nothing is given before all can be */
	*ret_ownership = (struct ownership){
		.to = entry->pw_uid, .group = entry->pw_gid, .only_looks = true, .lacks_right = !confine_may_change_owner(),
	};
	return give_all(ret_ownership, config, why, size);
}

/* What fails here is no reason to stay root: that user may have brought it about. */
static int give_up(const struct config *config, const char *config_path, struct ownership *ownership, char *ret_error,
		   size_t error_size)
{
	int err;

	/* where no file of the kernel says it, it is measured by a counter, which that user cannot open */
	event_nominal_cycles();
	err = broker_begin(broker_name, config_path);
	if (err) {
		snprintf(ret_error, error_size, "%s cannot be started: %s", broker_name, strerror(-err));
		return err;
	}
	ownership->only_looks = false;
	/* a disk that is read-only or absent, or a server that does not let root do that: what needs it says so itself */
	if (give_all(ownership, config, ret_error, error_size))
		log_warning("%s", ret_error);
	err = confine_daemon(ownership->to, ownership->group);
	if (err) {
		snprintf(ret_error, error_size, "cannot become user %s: %s", STATUSFILE_USER, strerror(-err));
		return err;
	}
	if (!confine_daemon_calls())
		log_warning("stacktapd: this kernel does not filter system calls");
	return 0;
}

int rights_give_up(const struct config *config, const char *config_path, struct rights *ret_rights, char *ret_error,
		   size_t error_size)
{
	struct ownership ownership;
	int err = config->load_module ? kmodload_load(ret_error, error_size) : 0;

	*ret_rights = (struct rights){ 0 };
	if (err)
		return err;
	if (!may_give_up(config, &ownership, ret_rights->kept, sizeof(ret_rights->kept))) {
		err = give_up(config, config_path, &ownership, ret_error, error_size);
		if (err)
			return err;
	} else if (geteuid() == 0) {
		log_warning("stacktapd keeps running as root, with more rights than it needs: %s", ret_rights->kept);
	}
	note_user(ret_rights, geteuid());
	return 0;
}
