/*
 * Lock-out after wrong passwords: who has failed `threshold` times for a name at an address is
 * refused there, with the right password, too, until `lifetime_ms` after the first failure. A new
 * password begins anew. The name is free from other addresses, so that nobody locks others out
 * everywhere; an address is counted as struct address_block says.
 *
 * The process has one table, which is allocated at the first failure and bounded: of `objects`
 * failing names the ones that failed first are forgotten first. What others have failed at other
 * servers of the store does not count here.
 *
 * Thread-safe.
 */
#ifndef FROND_ACCESS_LOCKOUT_H
#define FROND_ACCESS_LOCKOUT_H

#include "base/address.h"
#include "base/status.h"

enum {
	LOCKOUT_KEY_BYTES = 16,
	LOCKOUT_THRESHOLD = 5, /* CouchDB's, as the next two */
	LOCKOUT_LIFETIME_MS = 300000,
	LOCKOUT_OBJECTS = 10000,
	LOCKOUT_OBJECTS_LIMIT = 1000000,
};

enum lockout_mode {
	LOCKOUT_OFF,
	LOCKOUT_WARN, /* failures are counted, and nobody is refused */
	LOCKOUT_ENFORCE,
};

struct lockout_rules {
	enum lockout_mode mode;
	uint64_t threshold;
	uint64_t lifetime_ms;
	uint64_t objects; /* what the process was started with: the first failure makes the table */
};

/* Who tries: a name at an address, with the password that the name has now. */
struct lockout_key {
	uint8_t bytes[LOCKOUT_KEY_BYTES];
};

/* True if the key has reached the threshold; what that means is the caller's, by the mode. */
bool lockout_reached(const struct lockout_rules *rules, const struct lockout_key *key);

/* A wrong password. Without memory for the table nothing is counted. */
void lockout_count(const struct lockout_rules *rules, const struct lockout_key *key);

#endif
