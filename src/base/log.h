/*
 * The log: one line for each event on standard error, with the time, the level, the name of the
 * event and key=value pairs. Libraries below server/ never log: they return an explanation, and
 * their caller logs it. Thread-safe.
 */
#ifndef FROND_BASE_LOG_H
#define FROND_BASE_LOG_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/setting.h"
#include "base/status.h"

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR,
};

/*
 * Parses the name of a level as settings write it; the names that CouchDB uses are allowed as well.
 * Returns false for any other text.
 */
bool log_level_parse(const char *name, enum log_level *ret);

void log_set_level(enum log_level least);

/*
 * `fmt` produces the key=value pairs, with %s, %.*s, %d, %u, %ld, %lld, %llu and %zu. It has quotes
 * around values that have spaces: a text between them, such as a reason that shows what a client
 * has sent, is written with %22 and %5C for quotes and backslashes, so that it stays one value.
 */
void log_event(enum log_level level, const char *event, const char *fmt, ...) PRINTF(3, 4);

/*
 * Limits how often one kind of event is logged, for events that clients can cause as often as they
 * like. Declared static, it begins as zeros. Any thread may use it.
 */
struct log_limit {
	_Atomic uint64_t not_before_ns;
	_Atomic uint64_t left_out;
};

#define LOG_LIMIT_NS (10 * 1000 * CLOCK_NS_PER_MS) /* at most one line in this time */

/*
 * True if the event is to be logged now. `*ret_before` is then how many events before it were not
 * logged, which the line says.
 */
bool log_limit_pass(struct log_limit *limit, uint64_t *ret_before);

/* clang-format off */
#define LOG_SETTINGS(S, NUMBER, FLAG, TEXT)                                                        \
	TEXT(S, level, "log", "level", 1,                                                          \
	     "debug,info,notice,warning,error,critical,none;warn", "info",                         \
	     SETTING_LIVE | SETTING_LISTED,                                                        \
	     "The least important events that are logged. The last three are the same: errors "    \
	     "only.")
/* clang-format on */

SETTING_STRUCT(log_settings, LOG_SETTINGS);

extern const struct setting_group log_setting_group;

#endif
