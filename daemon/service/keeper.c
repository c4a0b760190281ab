// SPDX-License-Identifier: Apache-2.0
#include "service/keeper.h"

#include <fcntl.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "capture/ledger.h"

/* of which none came as far as to take it over: the next is none that will */
enum { HEIRS_MAX = 3 };

#define SESSION_NAME "stacktap-session"
#define LEDGER_NAME "stacktap-ledger"

/* Of two sessions, which who is killed as it replaces one may leave, a pair that is not one is refused later. */
static int *place_of(struct kept_fds *fds, const char *name)
{
	if (!strcmp(name, SESSION_NAME))
		return &fds->session;
	return !strcmp(name, LEDGER_NAME) ? &fds->ledger : NULL;
}

static bool has_too_many_heirs(int fd)
{
	struct ledger *ledger;
	bool has_too_many;
	uint32_t limit;

	/* who takes it over refuses that, and says why */
	if (ledger_open(fd, &ledger, &limit) < 0)
		return false;
	has_too_many = ++ledger->heirs > HEIRS_MAX;
	ledger_free(ledger, limit);
	return has_too_many;
}

void keeper_forget(struct kept_fds *fds)
{
	if (fds->session >= 0)
		close(fds->session);
	if (fds->ledger >= 0)
		close(fds->ledger);
	fds->session = fds->ledger = -1;
	keeper_drop();
}

void keeper_take(struct kept_fds *ret_fds)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);

	*ret_fds = (struct kept_fds){ .session = -1, .ledger = -1 };
	for (int i = 0; i < count; i++) {
		int fd = SD_LISTEN_FDS_START + i, *place = place_of(ret_fds, names[i]);

		if (place && *place < 0)
			*place = fcntl(fd, F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START + count);
		close(fd);
		free(names[i]);
	}
	free(names);
}

void keeper_check(struct kept_fds *fds)
{
	if (fds->session < 0 && fds->ledger < 0)
		return;
	if (fds->session < 0 || fds->ledger < 0) {
		log_warning("the file descriptor store has only a part of the session of a daemon that was "
			    "killed: it is closed, and its samples are lost");
		keeper_forget(fds);
	} else if (has_too_many_heirs(fds->ledger)) {
		log_warning("the session of a daemon that was killed is closed: %d daemons were killed "
			    "before they took it over", HEIRS_MAX);
		keeper_forget(fds);
	}
}

bool keeper_is_there(void)
{
	return getenv("NOTIFY_SOCKET");
}

/* FDPOLL=0: whether it polls readable is nobody's affair but ours. */
static void keep(const char *name, int fd)
{
	char text[96];
	int r;

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	r = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
	if (r < 0)
		log_warning("cannot put the session into the file descriptor store: %s; if the daemon is "
			    "killed, sampling stops until the next start", strerror(-r));
}

void keeper_keep(int session, int ledger)
{
	keeper_drop();
	keep(LEDGER_NAME, ledger);
	keep(SESSION_NAME, session);
}

void keeper_drop(void)
{
	sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" SESSION_NAME);
	sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" LEDGER_NAME);
}
