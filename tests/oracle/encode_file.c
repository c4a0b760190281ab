// SPDX-License-Identifier: Apache-2.0
/*
 * encode_file OUTPUT MAX-BYTES WITH-CPU [FORM [RULE]]: a synthetic window through aggregator and encoder into a file, for
 * checks by an independent decoder. Prints what the window holds, one fact per line. FORM is a sum of: 1 for ranges as names, 2 for
 * Functions twice, 4 for a suffix of the kernel's names.
 */
#include <string.h>

#include "export/encode.h"
#include "export/relabel.h"
#include "export/store_file.h"
#include "synthetic.h"

static int take(void *ctx, struct payload *payload)
{
	int err = store_file_append(ctx, payload->data, payload->size);

	printf("payload %zu samples %llu profiles %llu\n", payload->size,
	       (unsigned long long)payload->samples, (unsigned long long)payload->profiles);
	free(payload->data);
	return err;
}

int main(int argc, char **argv)
{
	const struct encode_attribute resource[] = {
		{ "host.name", "testhost" }, { "service.name", "not-this" },
		{ "process.pid", "nor this" },
	};
	struct encode_options options = {
		.service_name = "of the environment", .resource = resource,
		.resource_count = ARRAY_SIZE(resource),
	};
	struct aggregator *aggregator;
	struct store_file *file;
	struct window *window;
	char error[256] = "";
	int err, form = 0;

	if (argc < 4 || argc > 6) {
		fprintf(stderr, "usage: encode_file OUTPUT MAX-BYTES WITH-CPU [FORM [RULE]]\n");
		return 2;
	}
	options.max_bytes = strtoul(argv[2], NULL, 10);
	options.with_cpu = atoi(argv[3]);
	if (argc >= 5)
		form = atoi(argv[4]);
	options.form.names_ranges = form & 1;
	options.form.repeats_functions = form & 2;
	options.form.kernel_suffix = form & 4 ? "_[k]" : NULL;
	if (argc == 6 && (relabel_new(&options.relabel) ||
			  relabel_add(options.relabel, argv[5], error, sizeof(error)))) {
		fprintf(stderr, "encode_file: %s\n", error);
		return 2;
	}
	if (aggregator_new(&aggregator) || store_file_create(argv[1], &file))
		return 1;
	window = synthetic_window(aggregator);
	printf("start %llu end %llu\n",
	       (unsigned long long)(window->start + (uint64_t)window->realtime_offset),
	       (unsigned long long)(window->end + (uint64_t)window->realtime_offset));
	for (size_t i = 0; i < window->profile_count; i++)
		printf("profile %s samples %llu complete %llu stale %llu lost %llu throttled %llu\n",
		       window->profiles[i].event, (unsigned long long)window->counts[i].samples,
		       (unsigned long long)window->counts[i].complete,
		       (unsigned long long)window->counts[i].stale,
		       (unsigned long long)window->counts[i].lost,
		       (unsigned long long)window->counts[i].throttled);
	err = encode_window(&options, window, take, file);
	relabel_free(options.relabel);
	window_free(window);
	aggregator_free(aggregator);
	synthetic_check_pools();
	if (!err)
		err = store_file_close(file, NULL);
	if (err)
		fprintf(stderr, "encode_file: %s\n", strerror(-err));
	return err ? 1 : 0;
}
