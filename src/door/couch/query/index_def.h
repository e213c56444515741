/*
 * Indexes as CouchDB's clients define and see them: members of `views` in design documents whose
 * language is "query". Plain values in the request's arena, or borrowed from what was read.
 */
#ifndef FROND_DOOR_COUCH_QUERY_INDEX_DEF_H
#define FROND_DOOR_COUCH_QUERY_INDEX_DEF_H

#include "door/couch/query/members.h"
#include "door/couch/query/normal.h"

struct query_index {
	struct str ddoc; /* with "_design/"; ptr NULL: _all_docs, which is always there */
	struct str name;
	struct query_sort columns;
	struct normal_path *paths; /* of the columns */
	struct str filter;         /* JSON text, normalized; ptr NULL: all documents are in it */
	bool partitioned;
};

/* What a request that creates an index asks for. */
struct index_request {
	struct query_index index;
	struct str definition; /* as it was sent */
	bool has_partitioned;  /* the request says whether it is partitioned */
};

/*
 * Reads the body of POST /{db}/_index, and refuses what is wrong in it in CouchDB's words. A name
 * that the request does not give is made of the definition as CouchDB makes it, so that the same
 * request makes the same design document on every server.
 */
MUST_USE enum status index_request_read(struct couch_req *r, struct index_request *ret);

/* Appends the member of `views` that stands for the index. */
void index_request_write_view(const struct index_request *q, struct buf *out);

/* The index that is always there: documents by id. */
MUST_USE enum status query_index_all_docs(struct arena *arena, struct query_index *ret);

/*
 * Appends the indexes that a design document's text defines to an array in the arena. Views that
 * define none are passed over, as is all of a document that is not of the language "query".
 */
struct query_indexes {
	struct query_index *items;
	size_t count;
	size_t cap;
};

MUST_USE enum status query_indexes_add(struct couch_req *r, struct str ddoc, struct str text,
				       bool db_partitioned, struct query_indexes *list);

/* Appends the index as _index and _explain show it. */
void query_index_write(const struct query_index *index, struct buf *out);

/* "_design/x" of "x" or "_design/x". ptr NULL when the arena is full. */
struct str query_design_id(struct str name, struct arena *arena);

#endif
