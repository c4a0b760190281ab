// SPDX-License-Identifier: Apache-2.0
#include "service/rights.h"

#include <pwd.h>
#include <string.h>

#include "base/log.h"
#include "broker/broker.h"
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

/* 0: it can be that user, and has a broker. -errno and why not: it has what it had. */
static int prepare(const struct config *config, const char *config_path, struct ownership *ret_ownership, char *why,
		   size_t size)
{
	const struct passwd *entry = getpwnam(STATUSFILE_USER);
	struct ownership ownership = { 0 };
	int err;

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
	ownership.to = entry->pw_uid;
	ownership.group = entry->pw_gid;
	/* who stays root may be without CAP_DAC_OVERRIDE, and then needs what it has: nothing is given before all can be */
	ownership.only_looks = true;
	err = give_all(&ownership, config, why, size);
	if (err)
		return err;
	err = broker_begin(broker_name, config_path);
	if (err) {
		snprintf(why, size, "%s cannot be started: %s", broker_name, strerror(-err));
		return err;
	}
	ownership.only_looks = false;
	err = give_all(&ownership, config, why, size);
	if (err)
		broker_end();
	*ret_ownership = ownership;
	return err;
}

int rights_give_up(const struct config *config, const char *config_path, struct rights *ret_rights, char *ret_error,
		   size_t error_size)
{
	const bool is_root = geteuid() == 0;
	struct ownership ownership;
	int err;

	*ret_rights = (struct rights){ 0 };
	if (config->load_module) {
		err = kmodload_load(ret_error, error_size);
		if (err)
			return err;
	}
	if (prepare(config, config_path, &ownership, ret_rights->kept, sizeof(ret_rights->kept))) {
		if (is_root)
			log_warning("stacktapd keeps running as root, with more rights than it needs: %s", ret_rights->kept);
	} else {
		err = confine_daemon(ownership.to, ownership.group);
		if (err) {
			snprintf(ret_error, error_size, "cannot become user %s: %s", STATUSFILE_USER, strerror(-err));
			return err;
		}
		if (!confine_daemon_calls())
			log_debug("system calls are not filtered");
	}
	note_user(ret_rights, geteuid());
	return 0;
}
