// SPDX-License-Identifier: Apache-2.0
#include "cli/import.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "view/import.h"
#include "view/recording.h"

#define INPUT_MAX ((size_t)256 << 20)
#define DICTIONARY_MAX ((size_t)256 << 20)

enum { HEAD = 8 };

static const char perf_magic[] = "PERFILE2";

/* All of it, from where @file stands. */
static int slurp(FILE *file, struct buffer *input)
{
	size_t got;

	do {
		if (input->size > INPUT_MAX || !buffer_reserve(input, 1 << 20))
			return -E2BIG;
		got = fread(input->data + input->size, 1, 1 << 20, file);
		input->size += got;
	} while (got);
	return ferror(file) ? -EIO : 0;
}

static int read_pprof(struct import *import, FILE *file)
{
	struct buffer input = { .pool = POOL_REPORT };
	int err = slurp(file, &input);

	if (!err)
		err = import_pprof(import, input.data, input.size);
	buffer_free(&input);
	return err;
}

/* What perf makes of its own file; it knows all versions of it. */
static int read_perf_data(struct import *import, const char *path)
{
	char *const argv[] = {
		(char *)(uintptr_t)"perf", (char *)(uintptr_t)"script", (char *)(uintptr_t)"-i",
		(char *)(uintptr_t)path, (char *)(uintptr_t)"-F",
		(char *)(uintptr_t)"+pid", (char *)(uintptr_t)"--ns", NULL,
	};
	_cleanup_fclose_ FILE *file = NULL;
	posix_spawn_file_actions_t actions;
	int fds[2], status, err;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return cli_error("cannot make a pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	err = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	file = fdopen(fds[0], "r");
	if (err)
		return cli_error("%s is a perf.data file, and `perf script' cannot be run here: "
				 "%s. Run `perf script >x.perf' where it was recorded, and convert "
				 "x.perf", path, strerror(err));
	err = file ? import_perf_script(import, file) : -ENOMEM;
	if (file)
		fclose(steal_ptr(file));
	if (waitpid(child, &status, 0) < 0 || status)
		return cli_error("perf script failed for %s", path);
	return err;
}

/* A pipe's bytes, in a file without a name, to begin again; others as they are. */
static int copy_pipe(FILE **file)
{
	_cleanup_fclose_ FILE *copy = NULL;
	uint8_t bytes[BUFSIZ];
	size_t got, total = 0;

	if (!fseek(*file, 0, SEEK_SET))
		return 0;
	copy = tmpfile();
	if (!copy)
		return -errno;
	while ((got = fread(bytes, 1, sizeof(bytes), *file))) {
		total += got;
		if (total > INPUT_MAX)
			return -E2BIG;
		if (fwrite(bytes, 1, got, copy) != got)
			return -errno;
	}
	if (ferror(*file) || fflush(copy))
		return -errno;
	rewind(copy);
	fclose(*file);
	*file = steal_ptr(copy);
	return 0;
}

static int read_input(struct import *import, const char *path, FILE *file)
{
	uint8_t head[HEAD] = { 0 };
	size_t got = fread(head, 1, sizeof(head), file);

	rewind(file);
	if (got == HEAD && !memcmp(head, perf_magic, HEAD) && !strcmp(path, "-"))
		return cli_error("standard input is a perf.data, which `perf script' reads by name "
				 "only: pass the file's name");
	if (got == HEAD && !memcmp(head, perf_magic, HEAD))
		return read_perf_data(import, path);
	if (got >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return read_pprof(import, file);
	if (got && (head[0] < ' ' && head[0] != '\n' && head[0] != '\t'))
		return cli_error("%s is neither pprof (gzip), perf.data nor what perf script prints",
				 recording_name(path));
	return import_perf_script(import, file);
}

static int explain(int err, const char *path)
{
	path = recording_name(path);
	switch (err) {
	case -EBADMSG:
		return cli_error("%s is damaged or holds no profile", path);
	case -ENODATA:
		return cli_error("%s holds no samples", path);
	case -EMSGSIZE:
		return cli_error("%s is more than one message of OTLP can hold, 64 MiB; split it", path);
	case -E2BIG:
		return cli_error("%s needs more memory than is allowed", path);
	default:
		return cli_error("cannot read %s: %s", path, strerror(-err));
	}
}

static int write_output(const struct import *import, const char *output, uint64_t *ret_bytes)
{
	_cleanup_(outfile_done) struct outfile file = { 0 };
	uint32_t length = htobe32((uint32_t)import->out.size);
	int ret = outfile_open(output, true, &file);

	if (ret)
		return ret;
	fwrite(&length, sizeof(length), 1, file.file);
	fwrite(import->out.data, 1, import->out.size, file.file);
	return outfile_finish(&file, ret_bytes);
}

static void say(const struct import *import, const char *output, uint64_t bytes, bool use_json)
{
	struct json json;
	char loss[256];
	int length = snprintf(loss, sizeof(loss), "%s", import->loss ?: "");

	if (import->changed)
		snprintf(loss + length, sizeof(loss) - (size_t)length, "%s%" PRIu64 " text%s with control characters, no "
			 "UTF-8 or more than 4095 bytes as %s", length ? "; " : "", import->changed, import->changed == 1 ? "" : "s",
			 import->changed == 1 ? "it was" : "they were");
	if (!use_json) {
		fprintf(stderr, "stacktap: %s: %" PRIu64 " samples of %s as otlp%s%s",
			strcmp(output, "-") ? output : "standard output", import->samples,
			import->format, *loss ? ", without " : "", loss);
		if (import->passed)
			fprintf(stderr, ", %swithout %" PRIu64 " lines or labels that are unknown or "
				"too many", *loss ? "and " : "", import->passed);
		fputc('\n', stderr);
		return;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", output);
	json_string(&json, "format", "otlp");
	json_string(&json, "from", import->format);
	json_string(&json, "without", loss);
	json_u64(&json, "samples", import->samples);
	json_u64(&json, "unknown", import->passed);
	json_u64(&json, "bytes", bytes);
	json_end(&json);
}

int import_run(const char *path, const char *output, bool use_json)
{
	_cleanup_(import_done) struct import import;
	_cleanup_fclose_ FILE *file = NULL;
	uint64_t bytes;
	int ret;

	/* the encoder's pool is the daemon's; here is none, and a profile is as large as it is */
	pool_get(POOL_ENCODE)->limit = DICTIONARY_MAX;
	ret = import_init(&import);
	if (ret)
		return explain(ret, path);
	file = strcmp(path, "-") ? fopen(path, "re") : fdopen(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "r");
	if (!file)
		return explain(-errno, path);
	ret = copy_pipe(&file);
	if (ret)
		return explain(ret, path);
	ret = read_input(&import, path, file);
	if (ret > 0)
		return ret;
	if (!ret)
		ret = import_finish(&import);
	if (ret)
		return explain(ret, path);
	ret = write_output(&import, output, &bytes);
	if (ret)
		return ret;
	say(&import, output, bytes, use_json);
	return cli_finish();
}
