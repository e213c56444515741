/* What tests of design documents' functions share. */
#ifndef FROND_TESTS_DOOR_FUNCTIONS_H
#define FROND_TESTS_DOOR_FUNCTIONS_H

#include "common.h"

#define MERGE_PATCH "Content-Type: application/merge-patch+json\r\n"

/* Without a worker there is nothing to be tested but that. */
static inline bool
has_worker(void)
{
	return getenv("FROND_JS_WORKER") != NULL;
}

/* Every test needs one. */
#define NEEDS_WORKER()                                                                             \
	do {                                                                                       \
		(void)state;                                                                       \
		if (!has_worker())                                                                 \
			skip();                                                                    \
	} while (0)

/* A design document with one function, whose text has no quotes and needs no escapes. */
static inline void
put_validator(const char *db, const char *name, const char *function)
{
	const char *target = format("/%s/_design/%s", db, name);
	const char *rev = "";

	door_request(d, "GET", target, NULL, NULL);
	if (d->last.status == 200)
		rev = format("\"_rev\":\"%s\",", door_member(d, "_rev"));
	door_expect(d, "PUT", target, format("{%s\"validate_doc_update\":\"%s\"}", rev, function),
		    201, "ok");
}

/* The revision of a document. */
static inline const char *
rev_of(const char *target)
{
	door_expect(d, "GET", target, NULL, 200, "_rev");
	return door_member(d, "_rev");
}

static inline void
create_with(const char *db, const char *function)
{
	door_create(d, db);
	put_validator(db, "v", function);
}

#endif
