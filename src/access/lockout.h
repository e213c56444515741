/*
 * Lock-out after wrong passwords. After `threshold` failures for one name from one address, that
 * name is refused from that address, even with the right password, until `lifetime_ms` after the
 * first failure. A changed password starts a new count. The name still works from other addresses,
 * so nobody can lock a person out everywhere. Which addresses count as one is decided by struct
 * address_block.
 *
 * The process has one table, allocated at the first failure. It keeps `objects` pairs of name and
 * address and forgets those whose first failure is the oldest. Each server of a store counts for
 * itself.
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
	uint64_t objects; /* read once, when the first failure allocates the table */
};

/* A name at an address, with the password that the name has at present. */
struct lockout_key {
	uint8_t bytes[LOCKOUT_KEY_BYTES];
};

/*
 * True if the key has reached the threshold. The caller decides by `rules->mode` whether to refuse.
 */
bool lockout_reached(const struct lockout_rules *rules, const struct lockout_key *key);

/* Counts a wrong password. Nothing is counted if there is no memory for the table. */
void lockout_count(const struct lockout_rules *rules, const struct lockout_key *key);

#endif
