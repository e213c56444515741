/*
 * One line an event on standard error: time, level, the event's name, key=value pairs. Libraries
 * below server/ never log; they return an explanation and their caller logs it. Thread-safe.
 */
#ifndef FROND_BASE_LOG_H
#define FROND_BASE_LOG_H

#include "base/status.h"

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR,
};

void log_set_level(enum log_level least);

/* `fmt` makes the key=value pairs; values with spaces are the caller's to quote. */
void log_event(enum log_level level, const char *event, const char *fmt, ...) PRINTF(3, 4);

#endif
