/*
 * Answers of commands that list things: a first batch, and a cursor for what is left of them.
 */
#ifndef FROND_DOOR_MONGO_CMD_LIST_H
#define FROND_DOOR_MONGO_CMD_LIST_H

#include "base/buf.h"
#include "door/mongo/txn/command.h"

struct list_answer {
	struct call *call;
	struct str ns;
	uint64_t want; /* documents of the first batch, at most */
	uint64_t count;
	size_t from;           /* of the batch, in the answer */
	struct buf rest;       /* an array: the documents behind the first batch */
	struct bson_builder b; /* of that */
	bool more;             /* there are some */
};

/*
 * Reads the command's `cursor`, which may have a batchSize, and begins the answer. `ns` outlives
 * it. list_answer_fini() also after a failure.
 */
MUST_USE enum status list_answer_begin(struct list_answer *l, struct call *c,
				       const struct arg_value *cursor, struct str ns);
/* Adds a document, which is copied. */
MUST_USE enum status list_answer_put(struct list_answer *l, struct str doc);
/* Ends the answer, and keeps a cursor for what the batch does not have. */
MUST_USE enum status list_answer_end(struct list_answer *l);
void list_answer_fini(struct list_answer *l);

#endif
