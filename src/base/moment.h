/* Moments that people write. Thread-safe. */
#ifndef FROND_BASE_MOMENT_H
#define FROND_BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/*
 * Reads a moment in UTC, like 2026-11-21T15:52:37Z, with up to six digits behind the seconds. Gives
 * the microseconds since 1970. Returns false for another text, and for a moment before 1970.
 */
bool moment_parse(struct str text, uint64_t *ret_us);

#endif
