// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "capture/replay.h"
#include "records.h"
#include "view/recording.h"

enum {
	FIRST_TGID = 5000000,	/* above every kernel's pid_max: nothing is known of them */
	FRAMES_MAX = 128,
	SLICE = 10,		/* samples of a CPU until it runs another process */
	KERNELS_OWN = 5,	/* one sample in so many */
	RECORD_BYTES = 192,	/* of a sample beside its frames, as the ring is filled */
	PAGE = 4096,
};

#define FILE_SPACING (UINT64_C(1) << 32)

struct load_file {
	const char *path;	/* the texts' */
	uint64_t start, length, offset, inode;
	uint32_t major, minor;
};

struct load_stack {
	uint64_t weight;	/* of it and all before it in its template */
	uint32_t kernel_count, user_count;
	uint64_t *kernel;
	uint64_t *user;		/* the same in every copy: files have the same addresses in all */
};

struct template {
	uint32_t pid;
	char comm[16];
	struct load_stack *stacks;
	size_t count, capacity;
	bool has_user;
};

struct running {
	uint32_t tgid;
	uint64_t start_time, end;
	size_t template;
};

struct load {
	struct load_options options;
	struct texts texts;
	struct template *templates;
	size_t template_count;
	struct load_file *files;
	size_t file_count;
	struct running *running;
	uint32_t *on_cpu;	/* index of running */
	uint32_t next_tgid, number;
	uint64_t first_time;	/* CLOCK_MONOTONIC ns, as a drain's first window begins when it is made */
	uint64_t time;		/* of the next round */
	uint64_t state;
	bool is_configured;
	struct load_stats stats;
};

static uint64_t next(struct load *load)
{
	load->state ^= load->state << 13;
	load->state ^= load->state >> 7;
	load->state ^= load->state << 17;
	return load->state;
}

/* Small numbers are far more likely. */
static uint64_t skewed(struct load *load, uint64_t range)
{
	const double x = (double)(next(load) >> 11) / (double)(UINT64_C(1) << 53);

	return (uint64_t)(x * x * (double)range);
}

static void *grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	array = realloc(array, (count ? 2 * count : 1) * size);
	if (!array)
		abort();
	return array;
}

static struct load_file *file_of(struct load *load, const struct view_mapping *mapping)
{
	struct load_file *file;
	struct stat st;

	for (size_t i = 0; i < load->file_count; i++)
		if (load->files[i].path == mapping->file && load->files[i].start == mapping->start)
			return &load->files[i];
	load->files = grow(load->files, load->file_count, sizeof(*file));
	file = &load->files[load->file_count++];
	*file = (struct load_file){
		.path = mapping->file, .start = mapping->start,
		.length = mapping->limit > mapping->start ? mapping->limit - mapping->start : PAGE,
		.offset = mapping->offset / PAGE * PAGE, .inode = 90000 + load->file_count, .major = 8, .minor = 1,
	};
	/* where it is on this host as well its names are looked up */
	if (mapping->file[0] == '/' && stat(mapping->file, &st) == 0) {
		file->inode = st.st_ino;
		file->major = major(st.st_dev);
		file->minor = minor(st.st_dev);
	}
	return file;
}

static uint64_t base_of(const struct load *load, const struct load_file *file)
{
	return FILE_SPACING * (uint64_t)(file - load->files + 1);
}

static struct template *template_of(struct load *load, const struct view_process *process)
{
	struct template *template;

	for (size_t i = 0; i < load->template_count; i++)
		if (load->templates[i].pid == process->pid)
			return &load->templates[i];
	load->templates = grow(load->templates, load->template_count, sizeof(*template));
	template = &load->templates[load->template_count++];
	*template = (struct template){ .pid = process->pid };
	snprintf(template->comm, sizeof(template->comm), "%.15s", process->name);
	return template;
}

static uint64_t *copy_of(const uint64_t *ips, uint32_t count)
{
	uint64_t *copy = malloc(count * sizeof(*ips) + 1);

	if (!copy)
		abort();
	memcpy(copy, ips, count * sizeof(*ips));
	return copy;
}

static int take_profile(void *ctx, const struct view_profile *profile)
{
	template_of(ctx, &profile->process);
	return 0;
}

static int take_sample(void *ctx, const struct view_profile *profile, const struct view_sample *sample)
{
	uint64_t kernel[FRAMES_MAX], user[FRAMES_MAX];
	struct load *load = ctx;
	struct template *template = template_of(load, &profile->process);
	struct load_stack stack = { .weight = sample->samples };

	for (size_t i = 0; i < sample->frame_count && stack.user_count < FRAMES_MAX; i++) {
		const struct view_frame *frame = sample->frames[i];

		if (frame->is_inlined)
			continue;
		if (frame->kind == FRAME_KIND_KERNEL && stack.kernel_count < STACKTAP_MAX_KERNEL_FRAMES) {
			kernel[stack.kernel_count++] = frame->address;
		} else if (frame->kind == FRAME_KIND_NATIVE && frame->mapping) {
			const struct load_file *file = file_of(load, frame->mapping);

			user[stack.user_count++] =
				base_of(load, file) + frame->address - file->start / PAGE * PAGE;
		}
	}
	if (!stack.kernel_count && !stack.user_count)
		return 0;
	if (template->count)
		stack.weight += template->stacks[template->count - 1].weight;
	stack.kernel = copy_of(kernel, stack.kernel_count);
	stack.user = copy_of(user, stack.user_count);
	template->stacks = grow(template->stacks, template->count, sizeof(stack));
	template->stacks[template->count++] = stack;
	template->has_user |= stack.user_count > 0;
	load->stats.stacks++;
	return 0;
}

/* The kernel's own and those with code of their own stay. */
static int keep_templates(struct load *load)
{
	size_t kept = 0;

	for (size_t i = 0; i < load->template_count; i++) {
		struct template *template = &load->templates[i];

		if (template->has_user || (!template->pid && template->count)) {
			load->templates[kept++] = *template;
			continue;
		}
		for (size_t j = 0; j < template->count; j++) {
			free(template->stacks[j].kernel);
			free(template->stacks[j].user);
		}
		free(template->stacks);
	}
	load->template_count = kept;
	for (size_t i = 0; i < kept; i++)
		if (load->templates[i].has_user)
			return 0;
	return -ENODATA;
}

int load_new(const struct load_options *options, struct load **ret_load)
{
	struct load *load = calloc(1, sizeof(*load));
	struct reader_sink sink = { .profile = take_profile, .sample = take_sample, .ctx = load };
	struct reader *reader = NULL;
	bool is_cut;
	int r;

	if (!load)
		return -ENOMEM;
	load->options = *options;
	load->state = 88172645463325252;
	load->first_time = load->time = clock_monotonic();
	load->next_tgid = FIRST_TGID;
	texts_init(&load->texts);
	load->running = calloc(options->processes, sizeof(*load->running));
	load->on_cpu = calloc(options->cpus, sizeof(*load->on_cpu));
	r = load->running && load->on_cpu ? reader_new(&load->texts, NULL, false, &sink, &reader) : -ENOMEM;
	if (!r)
		r = recording_read(options->recording, NULL, reader, &is_cut, NULL, 0);
	reader_free(reader);
	if (!r)
		r = keep_templates(load);
	if (r < 0) {
		load_free(load);
		return r;
	}
	load->stats.templates = load->template_count;
	load->stats.files = load->file_count;
	*ret_load = load;
	return 0;
}

void load_free(struct load *load)
{
	if (!load)
		return;
	for (size_t i = 0; i < load->template_count; i++) {
		for (size_t j = 0; j < load->templates[i].count; j++) {
			free(load->templates[i].stacks[j].kernel);
			free(load->templates[i].stacks[j].user);
		}
		free(load->templates[i].stacks);
	}
	free(load->templates);
	free(load->files);
	free(load->running);
	free(load->on_cpu);
	texts_free(&load->texts);
	free(load);
}

static void start(struct load *load, struct drain *drain, struct running *process)
{
	const struct template *template;
	struct sideband_task task;

	do {
		process->template = next(load) % load->template_count;
		template = &load->templates[process->template];
	} while (!template->has_user);
	process->tgid = load->next_tgid++;
	process->start_time = load->time;
	process->end = load->time + (1 + next(load) % (2 * load->options.lifetime_s)) * NSEC_PER_SEC;
	task = (struct sideband_task){
		.time = load->time, .pid = process->tgid, .tid = process->tgid, .parent_pid = 1, .parent_tid = 1,
		.comm = template->comm, .is_exec = true,
	};
	drain_ops.fork(drain, &task);
	drain_ops.comm(drain, &task);
	for (size_t i = 0; i < load->file_count; i++) {
		const struct load_file *file = &load->files[i];

		drain_ops.mmap(drain, &(struct sideband_mmap){
			.time = load->time, .pid = process->tgid, .tid = process->tgid,
			.address = base_of(load, file),
			.length = (file->length + file->start % PAGE + PAGE - 1) / PAGE * PAGE,
			.file_offset = file->offset, .major = file->major, .minor = file->minor,
			.inode = file->inode, .path = file->path,
		});
	}
	load->stats.started++;
}

static void replace_ended(struct load *load, struct drain *drain)
{
	for (uint32_t i = 0; i < load->options.processes; i++) {
		struct running *process = &load->running[i];

		if (process->tgid && process->end > load->time)
			continue;
		if (process->tgid)
			drain_ops.exit(drain, &(struct sideband_task){
				.time = load->time, .pid = process->tgid, .tid = process->tgid });
		start(load, drain, process);
	}
}

static const struct load_stack *pick_stack(struct load *load, const struct template *template)
{
	const uint64_t wanted = next(load) % template->stacks[template->count - 1].weight;
	size_t low = 0, high = template->count - 1;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (template->stacks[middle].weight > wanted)
			high = middle;
		else
			low = middle + 1;
	}
	return &template->stacks[low];
}

static const struct template *kernels_own(const struct load *load)
{
	for (size_t i = 0; i < load->template_count; i++)
		if (!load->templates[i].pid)
			return &load->templates[i];
	return NULL;
}

static void add_sample(struct load *load, struct records *records, uint32_t cpu, uint64_t time)
{
	const struct template *own = next(load) % KERNELS_OWN ? NULL : kernels_own(load);
	const struct running *process;
	const struct load_stack *stack;
	uint32_t tid;

	if (next(load) % SLICE == 0)
		load->on_cpu[cpu] = (uint32_t)skewed(load, load->options.processes);
	process = &load->running[load->on_cpu[cpu]];
	stack = pick_stack(load, own ? own : &load->templates[process->template]);
	tid = own ? 0 : process->tgid + cpu % 4;
	records_sample(records, &(struct sample_spec){
		.time = time, .tgid = own ? 0 : process->tgid, .tid = tid, .cpu = cpu,
		.start_time = own ? 0 : process->start_time, .exec_id = own ? 0 : process->tgid,
		.period = NSEC_PER_SEC / load->options.rate_hz,
		.flags = own ? STACKTAP_SAMPLE_IDLE : stack->kernel_count ? 0 : STACKTAP_SAMPLE_USER_MODE,
		.kernel_ips = stack->kernel, .kernel_count = stack->kernel_count,
		.user_ips = stack->user, .user_count = own ? 0 : stack->user_count,
		.comm = own ? "swapper" : load->templates[process->template].comm,
	});
}

static int drain_cpu(struct load *load, struct drain *drain, uint32_t cpu, uint32_t ms)
{
	const uint64_t step = NSEC_PER_SEC / load->options.rate_hz, end = load->time + ms * NSEC_PER_MSEC;
	uint64_t time = load->first_time + ((load->time - load->first_time) / step + 1) * step, lost = 0, began;
	struct records records = { 0 };
	struct capture_stats stats = { 0 };
	int r;

	if (!load->is_configured)
		records_config(&records, 0, STACKTAP_MODE_PERIOD, load->options.rate_hz, step, PERF_TYPE_SOFTWARE,
			       PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	load->is_configured |= cpu + 1 == load->options.cpus;
	for (; time <= end; time += step) {
		if (records.bytes + RECORD_BYTES + 8 * FRAMES_MAX > load->options.ring_bytes)
			lost++;
		else
			add_sample(load, &records, cpu, time);
	}
	if (lost)
		records_lost(&records, 0, STACKTAP_LOST_RING_FULL, lost);
	began = clock_read(CLOCK_THREAD_CPUTIME_ID);
	r = ring_parse(records.data, records.bytes, cpu, &drain_ops, drain, &stats);
	load->stats.drain_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - began;
	load->stats.samples += stats.samples;
	load->stats.lost += lost;
	records_free(&records);
	return r;
}

int load_round(struct load *load, struct drain *drain, uint32_t ms, uint64_t *ret_time)
{
	uint64_t began = clock_read(CLOCK_THREAD_CPUTIME_ID);
	int r = 0;

	replace_ended(load, drain);
	load->stats.drain_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - began;
	for (uint32_t cpu = 0; !r && cpu < load->options.cpus; cpu++)
		r = drain_cpu(load, drain, cpu, ms);
	load->time += ms * NSEC_PER_MSEC;
	*ret_time = load->time;
	return r;
}

const struct load_stats *load_stats(const struct load *load)
{
	return &load->stats;
}
