/*
 * How often lines of one kind are logged that clients can cause: so many a second, of the whole
 * process. Those that are left out are counted, so that a later line can tell how many they were.
 *
 * Threading: any thread.
 */
#ifndef FROND_BASE_LOG_RATE_H
#define FROND_BASE_LOG_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct log_rate {
	_Atomic uint64_t second; /* the one under way */
	_Atomic uint32_t lines;  /* in it */
	_Atomic uint64_t left_out;
};

/* True if a line may be written now; else it is counted as left out. */
bool log_rate_allows(struct log_rate *rate, uint32_t lines_per_s);

/* How many lines were left out since this was asked last. */
uint64_t log_rate_left_out(struct log_rate *rate);

#endif
