/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per message to stderr: plain text on a terminal or pipe, with journald's <N> priority
 * prefix when started by systemd (JOURNAL_STREAM). All functions keep errno and may be called from
 * any thread. Library stages log at debug only; the caller that knows the consequence logs higher.
 */
#ifndef STACKTAP_BASE_LOG_H
#define STACKTAP_BASE_LOG_H

#include "base/macro.h"

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* @program: prefix of every line; @level: the most verbose level that is printed */
void log_setup(const char *program, enum log_level level);
void log_write(enum log_level level, const char *format, ...) _printf_(2, 3);
bool log_enabled(enum log_level level);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif /* STACKTAP_BASE_LOG_H */
