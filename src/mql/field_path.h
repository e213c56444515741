/*
 * Paths of fields, "a.b.c", as projections, sorts and stages have them: names between dots, none of
 * them empty or beginning with `$`. A position in an array is no name here.
 */
#ifndef FROND_MQL_FIELD_PATH_H
#define FROND_MQL_FIELD_PATH_H

#include "mql/mql.h"

/* Fails with MongoDB's errors for a path that is none. */
MUST_USE enum status mql_field_path_check(struct mql *q, struct str path);

/* The same for one name, without dots. */
MUST_USE enum status mql_field_name_check(struct mql *q, struct str name);

#endif
