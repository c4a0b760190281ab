/* SPDX-License-Identifier: Apache-2.0 */
/* A session with its rings, and a ledger of what came out of them. */
#ifndef KMODTEST_CLIENT_H
#define KMODTEST_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

enum {
	CLIENT_MAX_CPUS = 8,
};

/* what was parsed, of one source on one CPU */
struct ledger {
	uint64_t samples;
	uint64_t lost[STACKTAP_LOST_REASONS];
	uint64_t throttles;
	uint64_t stalls;
	uint64_t missed;
	uint64_t configs;
	bool configured;		/* a CONFIG came since the CPU was last told to end */
	bool final;			/* a CPU record with STATE_STOPPED came last */
	struct stacktap_cpu_counts counts; /* of the last CPU record */
	uint64_t lost_budget;		/* the same */
	struct stacktap_config config;	/* the last */
};

struct sample_view {
	const struct stacktap_sample *sample;
	const uint64_t *kernel_ips;
	unsigned int nr_kernel;
	const uint64_t *user_ips;
	unsigned int nr_user;
	const uint16_t *exact;
	unsigned int nr_exact;
	const struct stacktap_regs *regs;	/* NULL: neither these nor a slice */
	const uint8_t *slice;
	uint64_t slice_address;
	uint32_t slice_bytes;
	unsigned int slice_end;			/* enum stacktap_end */
};

typedef void client_visit(const struct sample_view *view, void *arg);

struct ring {
	struct stacktap_consumer_page *consumer;
	struct stacktap_producer_page *producer;
	const uint8_t *data;
	uint64_t data_bytes;
	uint64_t tail;
	uint64_t records;
	uint64_t consumer_offset;
	uint64_t producer_offset;
	uint16_t first_type;
	uint16_t state;			/* of the last CPU record */
	uint64_t anchors;
	uint64_t refusals;		/* CPU records with STATE_NO_COUNTER */
	uint64_t slice_bytes;		/* of what was unread at the last drain */
};

struct client {
	int fd;
	struct wire wire;
	struct stacktap_info info;
	struct ring rings[CLIENT_MAX_CPUS];
	struct ledger ledgers[CLIENT_MAX_CPUS][STACKTAP_MAX_SOURCES];
	uint32_t slice_bytes;		/* as client_set_slices() asked for */
	uint32_t slice_max_bytes;	/* as client_set_slice_max() did */
	uint64_t slices;		/* parsed */
	uint64_t sliceless;		/* samples that were to have one and have none */
	unsigned int malformed;		/* records that break the contract */
	const char *malformed_why;
	client_visit *visit;
	void *visit_arg;
};

/* one source, for client_set_sources() */
struct source {
	const char *name;
	uint32_t type;
	uint64_t config;
	uint64_t config1;
	uint32_t rate_hz;
	uint64_t period;
	uint64_t nominal_hz;
	uint32_t flags;
	uint8_t mode;
};

int client_open(struct client *client);
void client_close(struct client *client);
/* Bytes of the smallest ring that this kernel's pages allow. */
uint32_t client_least_ring(const struct client *client);
/* Smaller ones are made as small as can be. */
int client_add_ring(struct client *client, unsigned int cpu, uint32_t data_bytes);
/* Rings for all CPUs that are online. */
int client_add_rings(struct client *client, uint32_t data_bytes);
void client_drain(struct client *client);
int client_flush(struct client *client);

void client_begin(struct client *client, struct message *message, uint8_t command);
int client_send(struct client *client, struct message *message);
int client_start(struct client *client);
int client_stop(struct client *client);
int client_set_sources(struct client *client, const struct source *sources, unsigned int nr);
int client_set_rate(struct client *client, unsigned int id, uint32_t rate_hz);
int client_set_filter(struct client *client, uint64_t cpus, const uint32_t *tgids,
		      unsigned int nr_tgids, uint32_t flags);

/* While stopped; @every is left alone when 0. */
int client_set_slices(struct client *client, uint32_t bytes, uint32_t every);
int client_set_slice_max(struct client *client, uint32_t bytes);

/* Sum of a counter (enum stacktap_cnt_attr, u64) over CPUs, from the dump. */
uint64_t client_count(struct client *client, unsigned int source, uint16_t type);

/* One of the histograms of the dump, over CPUs. */
struct times {
	uint64_t ns;
	uint64_t count;
	uint64_t buckets[STACKTAP_TIME_BUCKETS];
};

struct times client_times(struct client *client, uint16_t ns_type, uint16_t times_type);

/* Calls of the first source that became no record yet, or never. */
uint64_t client_unrecorded(struct client *client);

/* What the dump says of @cpu, an enum stacktap_cpu_state, or 0. */
unsigned int client_cpu_state(struct client *client, unsigned int cpu);
/* And why @cpu has no counter, an errno, or 0. */
unsigned int client_cpu_error(struct client *client, unsigned int cpu);

/* Does the ledger of every CPU and source balance after a stop? Prints what does not. */
bool client_balanced(struct client *client);
uint64_t client_samples(const struct client *client, unsigned int source);
uint64_t client_lost(const struct client *client, enum stacktap_lost reason);
uint64_t client_calls(const struct client *client, unsigned int source);

#endif /* KMODTEST_CLIENT_H */
