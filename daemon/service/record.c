// SPDX-License-Identifier: Apache-2.0
#include "service/record.h"

#include <limits.h>
#include <string.h>

#include "service/start.h"

enum { ARGUMENTS_MAX = 20 };	/* but for those of the configuration */

/* Of each CPU. Both that may run have less than half of what the module lets all sessions take. */
#define CEILING_PERCENT "0.2"

/* Where it is installed, or was built. */
static int find_program(char path[PATH_MAX])
{
	static const char *const places[] = { "/stacktap", "/../bin/stacktap" };
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return -errno;
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(path, PATH_MAX, "%s%s", own, places[i]) < PATH_MAX && !access(path, X_OK))
			return 0;
	return -ENOENT;
}

int record_start(const struct record_request *request, char *const *arguments, const char *program, int output,
		 int complaints, pid_t *ret_pid)
{
	char path[PATH_MAX], seconds[16], event[RECORD_EVENT_MAX + 16];
	int err = program ? 0 : find_program(path);
	_cleanup_free_ char **argv = NULL;
	size_t count = 0, more = 0;

	if (err)
		return err;
	while (arguments[more])
		more++;
	argv = calloc(ARGUMENTS_MAX + more, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	snprintf(seconds, sizeof(seconds), "%u", request->seconds);
	snprintf(event, sizeof(event), "--event=%s", request->event);
#define PUT(text) (argv[count++] = (char *)(uintptr_t)(text))
	PUT("stacktap"), PUT("record"), PUT("-q"), PUT("-o"), PUT("-");
	PUT("--duration"), PUT(seconds), PUT("--ceiling"), PUT(CEILING_PERCENT);
	if (request->pid[0])
		PUT("-p"), PUT(request->pid);
	else
		PUT("-a");
	if (request->event[0])
		PUT(event);
	if (request->rate[0])
		PUT("-F"), PUT(request->rate);
	if (request->period[0])
		PUT("-c"), PUT(request->period);
	for (size_t i = 0; i < more; i++)
		PUT(arguments[i]);
#undef PUT
	return start_program(program ?: path, argv, (const struct start_fd[]){
		{ output, STDOUT_FILENO }, { complaints, STDERR_FILENO } }, 2, ret_pid);
}
