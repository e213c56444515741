/*
 * What an operator sees of a server, for the page at /_frond/ and for `frond top`. All of it but
 * the page's own files is for administrators. Each function answers one GET, or a POST where it
 * says so. A status is the request's failure.
 */
#ifndef FROND_DOOR_COUCH_LOOK_LOOK_H
#define FROND_DOOR_COUCH_LOOK_LOOK_H

#include "door/couch/wire/request.h"

enum {
	LOOK_OPERATIONS = 1000,         /* that one answer tells of */
	LOOK_TEXT_BYTES = 256,          /* of a name that a client has chosen */
	LOOK_DATABASES = 100,           /* in one answer */
	LOOK_LEAVES = 1000,             /* pairs in one answer, at most, */
	LOOK_LEAVES_USUAL = 100,        /* and where no limit is given */
	LOOK_LEAVES_BYTES = 256 * 1024, /* of their text: the answer ends behind the pair beyond */
};

/* A file of the page (page.c). False: there is none of that name. */
bool look_has_file(struct str name);
MUST_USE enum status look_file(struct couch_req *r, struct str name);

/* What runs, at every door, and what was slow (running.c). POST {"end": ID} ends an operation. */
couch_handler look_operations, look_end_operation, look_slow;

/* ?after=KEY: databases of every kind, with the bytes that they take (databases.c). */
couch_handler look_databases;

/* ?db=NAME&id=ID&after=KEY&limit=N: pairs as `frond inspect` draws them (leaves.c). */
couch_handler look_leaves;

/* ---- Texts and keys (text.c) ---- */

/* Appends a text as a JSON string (base/quote.h), cut to LOOK_TEXT_BYTES. */
void look_write_text(struct buf *out, struct str text);

/* Appends the member `next`, which leads behind the key. */
void look_write_next(struct buf *out, struct str key);
/* Reads the parameter `after`, which was `next`, into the arena; empty: there is none. */
MUST_USE enum status look_param_next(struct couch_req *r, struct str *ret);

#endif
