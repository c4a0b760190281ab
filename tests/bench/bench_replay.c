// SPDX-License-Identifier: Apache-2.0
/*
 * What the daemon costs on a large host: bench_replay RECORDING SECONDS [CPUS [HERTZ [PROCESSES]]]. The load is made of a
 * recording (see tests/unit/load.h): 256 CPUs at 99 Hz, 2,000 processes of 40 seconds each, until stated otherwise.
 * Prints one JSON object per line. Status 1: samples are missing, or the pools' limits were passed.
 */
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void print(const struct host_options *options, const char *what, double value, const char *unit)
{
	printf("{\"name\": \"%u CPUs at %u Hz, %u processes: %s\", \"value\": %.3f, \"unit\": \"%s\"}\n",
	       options->load.cpus, options->load.rate_hz, options->load.processes, what, value, unit);
}

int main(int argc, char **argv)
{
	char directory[] = "/tmp/bench-replay-XXXXXX";
	struct host_options options = {
		.load = { .cpus = 256, .rate_hz = 99, .processes = 2000, .lifetime_s = 40, .ring_bytes = 256 << 10 },
		.directory = directory,
	};
	struct host_result result;
	double samples, all;
	int r;

	if (argc < 3 || !mkdtemp(directory)) {
		fprintf(stderr, "usage: bench_replay RECORDING SECONDS [CPUS [HERTZ [PROCESSES]]]\n");
		return 2;
	}
	options.load.recording = argv[1];
	options.seconds = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		options.load.cpus = (uint32_t)strtoul(argv[3], NULL, 10);
	if (argc > 4)
		options.load.rate_hz = (uint32_t)strtoul(argv[4], NULL, 10);
	if (argc > 5)
		options.load.processes = (uint32_t)strtoul(argv[5], NULL, 10);
	/* a rate that nobody is expected to keep up with: what is lost for it is counted */
	options.is_paced = options.load.rate_hz > 99;
	r = host_run(&options, &result);
	rmdir(directory);
	if (r < 0) {
		fprintf(stderr, "bench_replay: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	samples = (double)result.load.samples;
	all = (double)(result.drain_ns + result.names_ns + result.export_ns + result.journal_thread_ns);
	print(&options, "samples", samples, "samples");
	print(&options, "lost in full rings", (double)result.load.lost, "samples");
	print(&options, "processes that came", (double)result.load.started, "processes");
	print(&options, "windows", (double)result.pipeline.windows, "windows");
	print(&options, "drain and aggregate", (double)result.drain_ns / samples / 1000, "us per sample");
	print(&options, "names", (double)result.names_ns / samples / 1000, "us per sample");
	print(&options, "encode and gzip", (double)result.export_ns / samples / 1000, "us per sample");
	print(&options, "journal, thread D", (double)result.journal_thread_ns / samples / 1000, "us per sample");
	print(&options, "journal, with its share of thread A", (double)result.pipeline.parts_cpu_ns / samples / 1000, "us per sample");
	print(&options, "all threads", all / samples / 1000, "us per sample");
	print(&options, "all threads", all / 1e7 / options.seconds, "% of a CPU");
	print(&options, "journal's share of that", 100 * (double)result.pipeline.parts_cpu_ns / all, "%");
	print(&options, "journal", (double)result.journal.bytes / samples, "bytes per sample");
	print(&options, "OTLP, gzip", (double)result.gzip_bytes / samples, "bytes per sample");
	print(&options, "the pools' peaks", (double)result.pool_bytes / (1 << 20), "MiB");
	print(&options, "resident, with the load's own", (double)result.resident / (1 << 20), "MiB");
	if (result.samples + result.pipeline.samples_dropped != result.load.samples ||
	    result.pipeline.counts.lost != result.load.lost || result.pool_bytes > result.pool_limits) {
		fprintf(stderr, "bench_replay: %llu samples sent and %llu dropped, of %llu; %llu of %llu counted as lost\n",
			(unsigned long long)result.samples, (unsigned long long)result.pipeline.samples_dropped,
			(unsigned long long)result.load.samples, (unsigned long long)result.pipeline.counts.lost,
			(unsigned long long)result.load.lost);
		return 1;
	}
	return 0;
}
