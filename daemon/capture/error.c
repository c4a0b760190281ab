// SPDX-License-Identifier: Apache-2.0
#include "capture/error.h"

#include <stdarg.h>
#include <string.h>

#include "base/file.h"

static _Thread_local char sentence[512];
static _Thread_local int sentence_error;

void capture_fail_clear(void)
{
	sentence_error = 0;
}

int capture_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	sentence_error = error;
	return error;
}

int capture_fail_sideband(int error, uint32_t cpu)
{
	_cleanup_free_ char *paranoid = NULL;

	switch (error) {
	case -EACCES:
	case -EPERM:
		if (file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", 64, &paranoid,
			      NULL) < 0)
			return capture_fail(error, "perf_event_open() is not available: cannot "
					    "track mmap events; the kernel lacks "
					    "CONFIG_PERF_EVENTS, or a sandbox hides it");
		paranoid[strcspn(paranoid, "\n")] = '\0';
		return capture_fail(error, "perf_event_open() denied: cannot track mmap events; "
				    "kernel.perf_event_paranoid is %s, which requires "
				    "CAP_SYS_ADMIN (CAP_PERFMON is enough up to 2): run as root or "
				    "lower it", paranoid);
	case -EMFILE:
		return capture_fail(error, "too many open files: the side band needs one for each "
				    "CPU (ulimit -n)");
	case -ENOMEM:
		return capture_fail(error, "no memory for the side band of CPU %u: raise "
				    "kernel.perf_event_mlock_kb or give CAP_IPC_LOCK", cpu);
	default:
		return capture_fail(error, "cannot open the side band of CPU %u: %s", cpu,
				    strerror(-error));
	}
}

const char *capture_strerror(int error)
{
	error = error < 0 ? error : -error;
	if (sentence_error == error)
		return sentence;
	switch (error) {
	case -ENODEV:
		return "the kernel module stacktap is not loaded: run `modprobe stacktap'";
	case -EPERM:
	case -EACCES:
		return "not permitted: run as root or with CAP_PERFMON";
	case -EPROTO:
		return "the loaded kernel module and this program are from different releases";
	default:
		return strerror(-error);
	}
}
