/* Two stores, pair by pair, at one version: `frond verify --against`. Used by the main thread. */
#ifndef FROND_CLI_COMPARE_H
#define FROND_CLI_COMPARE_H

#include "base/status.h"
#include "cli/progress.h"

struct compare_sum {
	uint64_t limit; /* differences to print */
	uint64_t pairs; /* of the first store */
	uint64_t bytes;
	uint64_t version; /* of both */
	uint64_t differences;
};

/*
 * Opens both stores for reading only, until they show the same version, and prints a line for each
 * difference. STATUS_INVALID, explained, if their versions differ for COMPARE_ATTEMPTS openings.
 */
MUST_USE enum status compare_stores(const char *url, const char *other_url,
				    struct progress *progress, struct compare_sum *sum,
				    struct err *err);

enum {
	COMPARE_ATTEMPTS = 20,
	COMPARE_PAUSE_MS = 250, /* between two of them: a standby is moments behind */
};

#endif
