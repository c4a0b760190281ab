// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/cpulist.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "broker/broker.h"
#include "capture/error.h"
#include "capture/hotplug.h"
#include "capture/kept.h"
#include "capture/ledger.h"
#include "capture/ring.h"
#include "capture/sideband.h"
#include "client/kmodload.h"
#include "stacktap/version.h"

enum {
	CAPTURE_DEFAULT_BYTES = 256 << 10, /* a quarter is for stack slices */
	CAPTURE_DEFAULT_SIDEBAND = 32 << 10,
	CAPTURE_MAX_CPUS = 65536,
	CAPTURE_REST_MS = 10,		/* between rounds on a busy host: 100 wakeups a second */
	CAPTURE_RETRY_MS = 1000,	/* after a ring could not be created */
	CAPTURE_FINISH_ROUNDS = 64,
};

enum {
	TOKEN_SESSION,
	TOKEN_WAKE,
	TOKEN_SIDEBAND,
	TOKEN_HOTPLUG,
};

struct capture_cpu {
	bool went_offline;	/* its dummy event died with the CPU */
};

struct capture {
	const struct capture_ops *ops;
	void *ctx;
	struct capture_ops inner;	/* ours, which watch what passes */
	struct stacktap_info info;
	struct capture_options options;
	int fd, epoll, wake, hotplug;
	uint32_t limit;			/* CPUs are below it */
	struct ring **rings;		/* [limit], NULL: none yet */
	struct sideband **sidebands;
	struct capture_cpu *cpus;
	uint32_t offline;		/* CPUs whose side band is to be opened again */
	uint64_t last_round;
	uint64_t retry_at;		/* 0: POLLPRI is being listened to */
	bool cpus_appeared, cpus_announced;
	uint64_t *buffer;		/* SIDEBAND_MAX_RECORD bytes */
	struct ledger *ledger;		/* NULL: nobody keeps the session */
	int ledger_fd;
	struct kept *kept;		/* to be delivered before our own; NULL: there is none */
	struct capture_stats stats;
};

static int watch(struct capture *capture, int operation, int fd, uint32_t events, int token)
{
	struct epoll_event event = { .events = events, .data.u32 = (uint32_t)token };

	return epoll_ctl(capture->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

/* A module that refuses STACKTAP_IOC_INFO tells its version in sysfs alone. */
static int fail_info(void)
{
	_cleanup_free_ char *version = NULL;

	if (file_read(AT_FDCWD, "/sys/module/stacktap/version", 64, &version, NULL) == 0)
		version[strcspn(version, "\n")] = '\0';
	return capture_fail(-EPROTO, "the loaded kernel module (version %s) does not speak the ABI "
			    "of this program (version %s, ABI %u.%u): install both from one "
			    "version, then reload the module (%s)",
			    version ? version : "unknown", STACKTAP_VERSION, STACKTAP_ABI_MAJOR,
			    STACKTAP_ABI_MINOR, KMODLOAD_RELOAD);
}

/* Tables are for sessions that were opened, and lists set, with CAP_SYS_PTRACE: where that is the broker's, so are both. */
static int open_session(struct stacktap_info *ret_info, int *ret_info_error)
{
	int fd;

	if (broker_is_there()) {
		fd = broker_open_device(ret_info, ret_info_error);
		if (fd < 0)
			errno = -fd;
		return fd;
	}
	fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	ret_info->size = sizeof(*ret_info);
	*ret_info_error = fd >= 0 && ioctl(fd, STACKTAP_IOC_INFO, ret_info) < 0 ? errno : 0;
	return fd;
}

static int open_device(struct capture *capture)
{
	struct stacktap_info *info = &capture->info;
	int info_error, fd = open_session(info, &info_error);

	if (fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		return capture_fail(-ENODEV, "the kernel module stacktap is not loaded (no %s): run "
				    "`modprobe stacktap'; if there is none for this kernel, see "
				    "`dkms status'", STACKTAP_DEVICE);
	if (fd < 0 && errno == EACCES)
		return capture_fail(-EPERM, "permission denied: %s is for root and the group "
				    "stacktap: run it with sudo, or as a member with CAP_PERFMON",
				    STACKTAP_DEVICE);
	if (fd < 0 && errno == EPERM)
		return capture_fail(-EPERM, "permission denied: %s requires CAP_PERFMON or "
				    "CAP_SYS_ADMIN: run it with sudo; with one of them a device "
				    "cgroup denies it (a unit's DeviceAllow=, a container's "
				    "--device)",
				    STACKTAP_DEVICE);
	if (fd < 0 && errno == EMFILE)
		return capture_fail(-EMFILE, "%s: %d sessions are open already, or this process "
				    "has too many files open (ulimit -n)", STACKTAP_DEVICE,
				    STACKTAP_MAX_SESSIONS);
	if (fd < 0 && errno == EOPNOTSUPP)
		return capture_fail(-EOPNOTSUPP, "%s may only be opened in the initial pid "
				    "namespace: run on the host or with --pid=host",
				    STACKTAP_DEVICE);
	if (fd < 0)
		return capture_fail(-errno, "cannot open %s: %s", STACKTAP_DEVICE, strerror(errno));
	capture->fd = fd;

	if (info_error) {
		/* a struct that either side does not know whole is another ABI, too */
		if (info_error != E2BIG && info_error != EINVAL && info_error != ENOTTY)
			return capture_fail(-info_error, "%s: STACKTAP_IOC_INFO: %s", STACKTAP_DEVICE,
					    strerror(info_error));
		return fail_info();
	}
	if (info->abi_major != STACKTAP_ABI_MAJOR)
		return capture_fail(-EPROTO, "the loaded kernel module %.31s speaks ABI %u.%u, "
				    "this program %u.%u: install both from one version, then "
				    "reload the module (%s)", info->module_version,
				    info->abi_major, info->abi_minor, STACKTAP_ABI_MAJOR,
				    STACKTAP_ABI_MINOR, KMODLOAD_RELOAD);
	if (!info->page_size || !info->nr_cpu_ids || info->nr_cpu_ids > CAPTURE_MAX_CPUS)
		return capture_fail(-EPROTO, "the kernel module reports %u CPUs and pages of %u "
				    "bytes", info->nr_cpu_ids, info->page_size);
	return 0;
}

static int open_sideband(struct capture *capture, uint32_t cpu)
{
	struct sideband *sideband;
	int r;

	if (capture->options.without_sideband || capture->sidebands[cpu])
		return 0;
	r = sideband_open(cpu, capture->options.sideband_bytes, &sideband);
	if (r < 0)
		return r;
	r = watch(capture, EPOLL_CTL_ADD, sideband->fd, EPOLLIN, TOKEN_SIDEBAND);
	if (r < 0) {
		sideband_close(sideband);
		return r;
	}
	capture->sidebands[cpu] = sideband;
	return 0;
}

static int open_ring(struct capture *capture, uint32_t cpu)
{
	struct ring_place place = {
		.cpu = cpu, .data_bytes = capture->options.ring_bytes, .page_bytes = capture->info.page_size,
	};
	int r;

	if (capture->rings[cpu])
		return 0;
	r = ring_create(capture->fd, &place);
	if (!r)
		r = ring_map(capture->fd, &place, &capture->rings[cpu]);
	if (r < 0)
		return r;
	capture->stats.cpus++;
	if (capture->ledger) {
		capture->ledger->cpus[cpu].consumer_offset = place.consumer_offset;
		capture->ledger->cpus[cpu].producer_offset = place.producer_offset;
		capture->ledger->cpus[cpu].has_ring = 1;
	}
	return 0;
}

/* Who keeps the session without it could not take it over. */
static int open_ledger(struct capture *capture)
{
	int r = ledger_new(capture->limit, &capture->ledger_fd, &capture->ledger);

	if (r < 0)
		return r;
	capture->ledger->session_id = capture->info.session_id;
	capture->ledger->purpose = capture->options.purpose;
	capture->ledger->ring_bytes = capture->options.ring_bytes;
	capture->ledger->page_bytes = capture->info.page_size;
	return 0;
}

static int open_cpus(struct capture *capture)
{
	struct cpulist online;
	int r = cpulist_read_online(&online);

	if (r < 0)
		return capture_fail(r, "cannot read which CPUs are online: %s", strerror(-r));
	/* the side band first: what is mapped once samples can come is told of */
	for (uint32_t cpu = 0; cpu < capture->limit && !r; cpu++) {
		if (!cpulist_has(&online, cpu))
			continue;
		r = open_sideband(capture, cpu);
		if (r == -ENODEV)
			r = 0;	/* went offline since */
		else if (r < 0)
			r = capture_fail_sideband(r, cpu);
	}
	for (uint32_t cpu = 0; cpu < capture->limit && !r; cpu++) {
		if (!cpulist_has(&online, cpu))
			continue;
		r = open_ring(capture, cpu);
		if (r < 0)
			r = capture_fail(r, "cannot create the ring of CPU %u (%u bytes): %s", cpu,
					 capture->options.ring_bytes, strerror(-r));
	}
	cpulist_done(&online);
	return r;
}

/*
 * A CPU ran, or may have run, without a side band. What its old event still held is lost with it,
 * which the gap covers.
 */
static bool reopen_sideband(struct capture *capture, uint32_t cpu)
{
	int r;

	if (capture->options.without_sideband)
		return true;
	sideband_close(steal_ptr(capture->sidebands[cpu]));
	r = open_sideband(capture, cpu);
	if (r == -ENODEV)
		return false;
	if (r < 0)
		log_warning("CPU %u has no side band: %s", cpu, strerror(-r));
	if (capture->ops->gap)
		capture->ops->gap(capture->ctx, CAPTURE_GAP_CPU_ONLINE, clock_monotonic(), cpu);
	return r == 0;
}

static void set_offline(struct capture *capture, uint32_t cpu, bool offline)
{
	if (capture->cpus[cpu].went_offline == offline)
		return;
	capture->cpus[cpu].went_offline = offline;
	capture->offline += offline ? 1 : -1U;
}

static void cpu_state(struct capture *capture, uint32_t cpu, bool online)
{
	if (cpu >= capture->limit)
		return;
	if (!online)
		set_offline(capture, cpu, true);
	else if (capture->cpus[cpu].went_offline)
		set_offline(capture, cpu, !reopen_sideband(capture, cpu));
}

static void read_announcements(struct capture *capture)
{
	uint32_t cpu;
	bool online;
	int r;

	capture->cpus_announced = false;
	while ((r = hotplug_read(capture->hotplug, &cpu, &online)) > 0)
		cpu_state(capture, cpu, online);
	/* any of them may have gone and come back */
	for (cpu = 0; r < 0 && cpu < capture->limit; cpu++)
		if (capture->sidebands[cpu])
			set_offline(capture, cpu, true);
}

static void on_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	struct capture *capture = ctx;

	if (record->type == STACKTAP_RECORD_CPU) {
		const struct stacktap_cpu_record *state = (const void *)record;

		if (state->state == STACKTAP_CPU_ONLINE || state->state == STACKTAP_CPU_OFFLINE)
			cpu_state(capture, cpu, state->state == STACKTAP_CPU_ONLINE);
	}
	if (capture->ledger)
		ledger_note(capture->ledger, capture->limit, cpu, record);
	if (capture->ops->record)
		capture->ops->record(capture->ctx, cpu, record);
}

static void on_sample(void *ctx, const struct stacktap_sample *sample,
		      const struct sample_sections *sections)
{
	struct capture *capture = ctx;

	capture->ops->sample(capture->ctx, sample, sections);
}

/* CPUs that were offline until now: the tail of their old side band was delivered long ago. */
static void retry_offline(struct capture *capture)
{
	for (uint32_t cpu = 0; capture->offline && cpu < capture->limit; cpu++)
		if (capture->cpus[cpu].went_offline && reopen_sideband(capture, cpu))
			set_offline(capture, cpu, false);
}

/* CPUs that came online for the first time. */
static void open_new_cpus(struct capture *capture)
{
	bool failed = false;

	capture->cpus_appeared = false;
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++) {
		int r;

		if (capture->rings[cpu])
			continue;
		r = open_sideband(capture, cpu);
		if (r == -ENODEV)
			continue;
		r = open_ring(capture, cpu);
		if (r < 0 && r != -ENODEV) {
			log_warning("CPU %u is not sampled: %s", cpu, strerror(-r));
			failed = true;
		}
		if (capture->ops->gap)
			capture->ops->gap(capture->ctx, CAPTURE_GAP_CPU_ONLINE, clock_monotonic(),
					  cpu);
	}
	/* POLLPRI stays up while a CPU lacks a ring: do not spin on it */
	if (failed) {
		capture->retry_at = clock_monotonic() + CAPTURE_RETRY_MS * NSEC_PER_MSEC;
		watch(capture, EPOLL_CTL_MOD, capture->fd, EPOLLIN, TOKEN_SESSION);
	}
}

/* Rings are whole pages, of up to 64 KiB; perf would make a larger one than it is asked for. */
static void settle_sizes(struct capture *capture)
{
	struct capture_options *options = &capture->options;
	const uint32_t page = capture->info.page_size;
	const size_t cpus = (size_t)max_of(sysconf(_SC_NPROCESSORS_CONF), 1L);

	if (!options->ring_bytes)
		options->ring_bytes = CAPTURE_DEFAULT_BYTES;
	if (!options->sideband_bytes)
		options->sideband_bytes = CAPTURE_DEFAULT_SIDEBAND;
	options->ring_bytes = max_of(options->ring_bytes, page);
	options->sideband_bytes = max_of(options->sideband_bytes, page);
	/* with their control pages */
	pool_get(POOL_RINGS)->limit = cpus * (options->ring_bytes + 2 * page);
	pool_get(POOL_SIDEBAND)->limit = cpus * (options->sideband_bytes + page);
}

int capture_open(const struct capture_options *options, const struct capture_ops *ops, void *ctx,
		 struct capture **ret_capture)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int r;

	capture_fail_clear();
	if (!capture)
		return -ENOMEM;
	capture->fd = capture->epoll = capture->wake = capture->hotplug = capture->ledger_fd = -1;
	capture->ops = ops;
	capture->ctx = ctx;
	capture->inner.record = on_record;
	capture->inner.sample = ops->sample ? on_sample : NULL;
	capture->options = *options;
	r = open_device(capture);
	if (r < 0)
		goto fail;
	settle_sizes(capture);

	r = -ENOMEM;
	capture->limit = capture->info.nr_cpu_ids;
	capture->rings = calloc(capture->limit, sizeof(*capture->rings));
	capture->sidebands = calloc(capture->limit, sizeof(*capture->sidebands));
	capture->cpus = calloc(capture->limit, sizeof(*capture->cpus));
	capture->buffer = malloc(SIDEBAND_MAX_RECORD);
	if (!capture->rings || !capture->sidebands || !capture->cpus || !capture->buffer)
		goto fail;
	if (options->is_kept && (r = open_ledger(capture)) < 0)
		log_warning("the session cannot be kept: %s; if the daemon is killed, sampling stops until the next start",
			    strerror(-r));

	capture->epoll = epoll_create1(EPOLL_CLOEXEC);
	capture->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (capture->epoll < 0 || capture->wake < 0) {
		r = -errno;
		goto fail;
	}
	r = watch(capture, EPOLL_CTL_ADD, capture->wake, EPOLLIN, TOKEN_WAKE);
	if (!r)
		r = watch(capture, EPOLL_CTL_ADD, capture->fd, EPOLLIN | EPOLLPRI, TOKEN_SESSION);
	/* without it the records of the rings have to do */
	capture->hotplug = options->without_sideband ? -1 : hotplug_open();
	if (!r && capture->hotplug >= 0)
		r = watch(capture, EPOLL_CTL_ADD, capture->hotplug, EPOLLIN, TOKEN_HOTPLUG);
	if (!r)
		r = open_cpus(capture);
	if (r < 0)
		goto fail;
	*ret_capture = capture;
	return 0;
fail:
	capture_close(capture);
	return r;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++) {
		if (capture->rings)
			ring_free(capture->rings[cpu]);
		if (capture->sidebands)
			sideband_close(capture->sidebands[cpu]);
	}
	kept_close(capture->kept);
	ledger_free(capture->ledger, capture->limit);
	if (capture->ledger_fd >= 0)
		close(capture->ledger_fd);
	if (capture->hotplug >= 0)
		close(capture->hotplug);
	if (capture->epoll >= 0)
		close(capture->epoll);
	if (capture->wake >= 0)
		close(capture->wake);
	if (capture->fd >= 0)
		close(capture->fd);
	free(capture->buffer);
	free(capture->cpus);
	free(capture->sidebands);
	free(capture->rings);
	free(capture);
}

void capture_take_over(struct capture *capture, struct kept *kept)
{
	capture->kept = kept;
}

int capture_ledger(const struct capture *capture, int *ret_session)
{
	*ret_session = capture->fd;
	return capture->ledger_fd;
}

void capture_set_purpose(struct capture *capture, uint64_t purpose)
{
	if (capture->ledger)
		capture->ledger->purpose = purpose;
}

uint64_t capture_session_id(const struct capture *capture)
{
	return capture->info.session_id;
}

const struct stacktap_info *capture_info(const struct capture *capture)
{
	return &capture->info;
}

int capture_request(const struct capture *capture, unsigned long request, void *argument)
{
	int r;

	if (request == STACKTAP_IOC_MAPPINGS_SET && broker_is_there())
		return broker_set_mappings(capture->fd, argument);
	r = ioctl(capture->fd, request, argument);
	return r < 0 ? -errno : r;
}

void capture_wake(struct capture *capture)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t written = write(capture->wake, &one, sizeof(one));

	/* it can only fail when the counter is full, and then the reader wakes anyway */
	(void)written;
	errno = saved;
}

static void take_wake(struct capture *capture)
{
	uint64_t count;
	ssize_t got = read(capture->wake, &count, sizeof(count));

	(void)got;	/* EAGAIN: taken already */
}

/* Let events gather for a moment; true when somebody wants us at once. */
static bool capture_rest(struct capture *capture)
{
	uint64_t since = clock_monotonic() - capture->last_round;
	struct pollfd wake = { .fd = capture->wake, .events = POLLIN };

	if (since >= CAPTURE_REST_MS * NSEC_PER_MSEC)
		return false;
	if (poll(&wake, 1, (int)(CAPTURE_REST_MS - since / NSEC_PER_MSEC)) <= 0)
		return false;
	take_wake(capture);
	return true;
}

int capture_wait(struct capture *capture, int timeout_ms)
{
	struct epoll_event events[64];
	int count;

	if (capture->retry_at && clock_monotonic() >= capture->retry_at) {
		capture->retry_at = 0;
		watch(capture, EPOLL_CTL_MOD, capture->fd, EPOLLIN | EPOLLPRI, TOKEN_SESSION);
	}
	if (capture_rest(capture))
		return 0;
	count = epoll_wait(capture->epoll, events, ARRAY_SIZE(events), timeout_ms);
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		if (events[i].data.u32 == TOKEN_WAKE)
			take_wake(capture);
		else if (events[i].data.u32 == TOKEN_SESSION && events[i].events & EPOLLPRI)
			capture->cpus_appeared = true;
		else if (events[i].data.u32 == TOKEN_HOTPLUG)
			capture->cpus_announced = true;
	}
	return 0;
}

static void drain_kept(struct capture *capture)
{
	int r = kept_drain(capture->kept, capture->fd, capture->ops, capture->ctx, &capture->stats);

	if (r < 0)
		log_warning("cannot flush the session that was taken over: %s; samples that it lost may be "
			    "missing from the count", strerror(-r));
	kept_close(steal_ptr(capture->kept));
}

int capture_drain(struct capture *capture, uint64_t *ret_time)
{
	uint64_t now;

	if (capture->cpus_announced)
		read_announcements(capture);
	if (capture->cpus_appeared)
		open_new_cpus(capture);
	if (capture->offline)
		retry_offline(capture);

	*ret_time = clock_monotonic();
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++)
		if (capture->rings[cpu])
			ring_snapshot(capture->rings[cpu]);
	/*
	 * A mapping event is in its ring before the code it maps can be sampled. So what the
	 * snapshot holds is explained by events from before now. Younger events wait: an event
	 * between the readings of two heads must not overtake an older one of the other CPU.
	 */
	now = clock_monotonic();
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++)
		if (capture->sidebands[cpu])
			sideband_snapshot(capture->sidebands[cpu]);
	sideband_merge(capture->sidebands, capture->limit, now + 10 * NSEC_PER_USEC,
		       capture->buffer, capture->ops, capture->ctx, &capture->stats);
	if (capture->ops->sideband_end)
		capture->ops->sideband_end(capture->ctx);
	if (capture->kept)
		drain_kept(capture);
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++) {
		if (!capture->rings[cpu])
			continue;
		/* told first: what is delivered in part when we are killed is not delivered again */
		if (capture->ledger)
			capture->ledger->cpus[cpu].taken = capture->rings[cpu]->limit;
		ring_consume(capture->rings[cpu], &capture->inner, capture, &capture->stats);
	}
	capture->last_round = clock_monotonic();
	if (capture->ledger)
		capture->ledger->drained = capture->last_round;
	return 0;
}

static bool rings_empty(const struct capture *capture)
{
	for (uint32_t cpu = 0; cpu < capture->limit; cpu++)
		if (capture->rings[cpu] && !ring_is_empty(capture->rings[cpu]))
			return false;
	return true;
}

int capture_finish(struct capture *capture)
{
	struct stacktap_flush flush = { .size = sizeof(flush) };
	uint64_t time;
	int r;

	/* what is still owed may not fit at once: each round makes room for more */
	for (int i = 0; i < CAPTURE_FINISH_ROUNDS; i++) {
		r = capture_drain(capture, &time);
		if (r < 0)
			return r;
		if (ioctl(capture->fd, STACKTAP_IOC_FLUSH, &flush) < 0)
			return -errno;
		if (rings_empty(capture))
			return 0;
	}
	return -EBUSY;
}

void capture_stats(const struct capture *capture, struct capture_stats *ret_stats)
{
	*ret_stats = capture->stats;
}
