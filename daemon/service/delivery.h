/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles go, and in which forms, by configuration and environment: what an exporter is made of. */
#ifndef STACKTAP_SERVICE_DELIVERY_H
#define STACKTAP_SERVICE_DELIVERY_H

#include "export/exporter.h"
#include "pipeline/pipeline.h"
#include "service/config.h"

/* Its strings are the configuration's, or its own. */
struct delivery {
	struct environment environment;
	char *urls[EXPORTER_DESTINATIONS];
	struct destination_options destinations[EXPORTER_DESTINATIONS];
	struct encode_form forms[EXPORTER_DESTINATIONS];
	size_t form_count;		/* at least one */
	struct exporter_options exporter;
};

/* -errno and a sentence. It does not move: the exporter's options point into it. */
int delivery_init(struct delivery *delivery, const struct config *config, char *error, size_t error_size);
void delivery_done(struct delivery *delivery);
/* Is there a directory for the journal? */
bool delivery_has_journal(const struct delivery *delivery);
/* Can the delivery that @a made stay when @b takes its place? */
bool delivery_same(const struct config *a, const struct config *b);
/* Then the strings that it borrows change places. */
void delivery_swap(struct config *a, struct config *b);
/* And [profile] may have another form, where no section [destination] depends on that. */
void delivery_take_form(struct delivery *delivery, const struct config *config);

#endif /* STACKTAP_SERVICE_DELIVERY_H */
