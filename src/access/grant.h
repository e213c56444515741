/*
 * Permissions on tables, as roles of people name them behind a door's prefix:
 *
 *     select@shop.orders    reading one table
 *     modify@shop           writing all tables of a keyspace
 *     all                   everything, everywhere
 *
 * The doors that serve the same tables read and compare them here; which of them a door knows, and
 * which prefixes it listens to, is the door's affair.
 *
 * Threading: none.
 */
#ifndef FROND_ACCESS_GRANT_H
#define FROND_ACCESS_GRANT_H

#include <stdbool.h>

#include "base/str.h"

enum grant {
	GRANT_SELECT = 1 << 0,
	GRANT_MODIFY = 1 << 1,
	GRANT_CREATE = 1 << 2,
	GRANT_ALTER = 1 << 3,
	GRANT_DROP = 1 << 4,
	GRANT_AUTHORIZE = 1 << 5,
	GRANT_DESCRIBE = 1 << 6,
	GRANT_ALL = (1 << 7) - 1,
};

enum {
	GRANTS_MOST = 1000, /* that a person may have; what is beyond does not count */
};

/* What a permission is on. Texts are borrowed. */
struct grant_tables {
	struct str keyspace; /* empty: all of them */
	struct str table;    /* empty: all of the keyspace */
};

/* "select", in any case; 0: there is none of that name. */
unsigned grants_named(struct str name);
/* "select", as roles say it; "all" for several. Static. */
const char *grant_word(enum grant grant);
/* "SELECT", as statements say it. Static. */
const char *grant_name(enum grant grant);

/* What stands behind "@": "shop.orders", "shop", or nothing. */
struct grant_tables grant_tables_read(struct str text);
/* True if whoever has a permission on `outer` has it on `on`, too. */
bool grant_tables_contain(const struct grant_tables *outer, const struct grant_tables *on);

#endif
