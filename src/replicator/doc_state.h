/*
 * What a document of _replicator says of its replication, in the members that CouchDB's replicator
 * writes and its clients read: _replication_state and those beside it.
 *
 * Pure functions: any thread.
 */
#ifndef FROND_REPLICATOR_DOC_STATE_H
#define FROND_REPLICATOR_DOC_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "doc/json_value.h"

#define REPLICATOR_DB "_replicator"

enum {
	DOC_TEXT_BYTES = 256 << 20, /* of one document as it is read */
};

struct rev_doc;

/* The JSON of a document without special members, in the arena. STATUS_LIMIT, the model's. */
MUST_USE enum status doc_text_of(const struct rev_doc *doc, struct arena *arena, struct str *ret);

/* Members that the document does not have are empty, with ptr NULL. */
struct doc_state {
	struct str state; /* "completed", "failed"; anything else: it has not ended */
	struct str time;
	struct str reason; /* of a failure */
	struct str stats;  /* JSON */
	struct str owner;
};

struct doc_state doc_state_of(const struct json_member *members, size_t count);

/* The same of a document's text; strings lie there or in the arena. STATUS_JSON_…, STATUS_LIMIT. */
MUST_USE enum status doc_state_parse(struct str text, struct arena *arena, struct doc_state *ret);

/* True if the document's job has ended: it gets no other one. */
bool doc_state_is_end(const struct doc_state *state);

/*
 * Appends the document `text` with the state of an end, at the present time, in place of what it
 * says. `detail` is the reason of a failure, or else the JSON of the figures. STATUS_JSON_…,
 * STATUS_LIMIT, STATUS_NOMEM.
 */
MUST_USE enum status doc_state_write_end(struct str text, bool failed, struct str detail,
					 struct arena *arena, struct buf *out);

#endif
