/* Private to server/: auth with the clock in the caller's hand, for tests of expiry. */
#ifndef FROND_SERVER_AUTH_INT_H
#define FROND_SERVER_AUTH_INT_H

#include "server/auth.h"

/* auth_make_cookie() at a moment: seconds since 1970. */
MUST_USE enum status auth_make_cookie_at(struct auth *a, struct str name, uint64_t now_s,
					 struct arena *arena, struct str *ret);

/* How many times the slow hash has been computed. */
uint64_t auth_slow_hashes(const struct auth *a);

#endif
