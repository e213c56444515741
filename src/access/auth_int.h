/* Private to access/: what auth.c is made of. */
#ifndef FROND_ACCESS_AUTH_INT_H
#define FROND_ACCESS_AUTH_INT_H

#include "access/auth.h"

/* auth_make_cookie() at a moment: seconds since 1970. */
MUST_USE enum status auth_make_cookie_at(struct auth *a, struct str name, uint64_t now_s,
					 struct arena *arena, struct str *ret);

#endif
