/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacktapd runs: one exporter and one pipeline, made from a configuration.
 *
 * The exporter outlives the pipelines of one export configuration, so that what waits for a retry
 * survives a reload. All calls from one thread, but that others may ask between them, under a lock of the caller's.
 */
#ifndef STACKTAP_SERVICE_SERVICE_H
#define STACKTAP_SERVICE_SERVICE_H

#include "service/config.h"
#include "service/pause.h"
#include "export/exporter.h"
#include "pipeline/pipeline.h"
#include "service/tap.h"

struct service;

/*
 * Load the module if that is wanted, begin to sample and to export. Takes what *config and *kept own, also on
 * failure, and leaves them empty. *ret_error is a sentence.
 */
int service_start(struct config *config, struct kept_fds *kept, struct service **ret_service, char *ret_error,
		  size_t error_size);
/*
 * Change over to another configuration; takes it as above. Rates and filters change in place,
 * anything else by a new pipeline. Users and cgroups are looked up anew; where that fails, a filter
 * that is named as before stays. On failure the old configuration is in force, or, when not even that
 * could be started again, nothing is: -ESHUTDOWN.
 */
int service_reload(struct service *service, struct config *config, char *ret_error,
		   size_t error_size);
/*
 * Sample or do not, as kill switch and duty cycle want it now. Where the module refuses, it is tried again at the
 * next call, and *ret_error says so.
 */
int service_look(struct service *service, char *ret_error, size_t error_size);
/* Why it does not sample for now, and how often that was so. */
enum pause_reason service_pause(const struct service *service, struct pause_stats *ret_stats);
/* Stop sampling, export what there is within stop_seconds. */
void service_stop(struct service *service);
void service_free(struct service *service);

const struct config *service_config(const struct service *service);
uint64_t service_session_id(const struct service *service);
/* Where profiles go; one of them is NULL. Of several receivers the first. */
const char *service_endpoint(const struct service *service);
const char *service_store(const struct service *service);
const char *service_spool(const struct service *service);	/* NULL: payloads wait in memory alone */
const struct destination_options *service_destinations(const struct service *service, size_t *ret_count);
/* How many were opened so far; what they count begins anew with each. */
unsigned int service_exporters(const struct service *service);
const struct relabel *service_relabel(const struct service *service);	/* NULL: no rules */
/* Of all payloads, for who wants profiles of the moment. */
struct taps *service_taps(struct service *service);
/* As pipeline_close_window(). -ENODEV: nothing samples. */
int service_close_window(struct service *service, uint64_t *ret_closing);
bool service_has_closed(struct service *service, uint64_t closing);
void service_stats(struct service *service, struct pipeline_stats *ret_pipeline,
		   struct exporter_stats *ret_exporter);

#endif /* STACKTAP_SERVICE_SERVICE_H */
