/* Private to access/: lock-out at a moment, for its tests. */
#ifndef FROND_ACCESS_LOCKOUT_INT_H
#define FROND_ACCESS_LOCKOUT_INT_H

#include "access/lockout.h"

/* lockout_reached() and lockout_count() at a moment of the monotonic clock. */
bool lockout_reached_at(const struct lockout_rules *rules, const struct lockout_key *key,
			uint64_t now_ns);
void lockout_count_at(const struct lockout_rules *rules, const struct lockout_key *key,
		      uint64_t now_ns);

#endif
