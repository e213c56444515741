/*
 * Ids and revisions of documents in requests and answers. The only state is the clock that new ids
 * begin with; any thread may call these functions.
 */
#ifndef FROND_DOOR_COUCH_WIRE_IDS_H
#define FROND_DOOR_COUCH_WIRE_IDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "doc/json_value.h"
#include "door/couch/wire/error.h"
#include "model/revisioned/revisioned.h"

enum {
	COUCH_SHOWN_BYTES =
		100, /* of a name that is too long: so much of it is shown in the refusal */
};

/* Checks a document's id that a client names. A refusal is explained in `fail`. */
MUST_USE enum status couch_docid_check(struct str id, struct couch_fail *fail);

static inline bool
couch_is_local(struct str id)
{
	return str_starts_with(id, STR("_local/"));
}

static inline bool
couch_is_design(struct str id)
{
	return str_starts_with(id, STR("_design/"));
}

/* Parses "position-hash". A text that is no revision is explained in `fail` as a 400. */
MUST_USE enum status couch_rev_parse(struct str text, struct arena *arena, struct rev_id *ret,
				     struct couch_fail *fail);
void couch_rev_write(struct rev_id rev, struct buf *out); /* a JSON string */

#endif
