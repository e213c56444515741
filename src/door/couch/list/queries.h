/*
 * POST …/queries: several questions in one body, each with parameters over those of the URL. They
 * stay JSON text and are read a page at a time, as are the keys that one of them names.
 *
 * Threading: the request's fiber. What is returned lies in the request's arena.
 */
#ifndef FROND_DOOR_COUCH_LIST_QUERIES_H
#define FROND_DOOR_COUCH_LIST_QUERIES_H

#include "door/couch/list/view_args.h"

struct couch_queries {
	struct json_list list;
	struct couch_view_args common; /* of the URL */
};

/* Reads the body, and the URL's parameters over `common`, which the caller has made. */
MUST_USE enum status couch_queries_read(struct couch_req *r, struct couch_queries *q);

/* What is done for the query at the position `at`. */
typedef enum status couch_query_visitor(void *arg, size_t at);

/*
 * Goes through the queries. Before each call `*args` are that query's parameters, which hold until
 * the call returns; so does what it has put into the request's arena.
 */
MUST_USE enum status couch_queries_visit(struct couch_req *r, const struct couch_queries *q,
					 struct couch_view_args *args, couch_query_visitor *visit,
					 void *arg);

/* A page of the keys that a question names. */
struct couch_key_page {
	struct arena_mark mark;  /* of the arena, before the page */
	size_t number;           /* private, as is the rest */
	struct json_value *keys; /* NULL: none has been read */
};

/* Begins with no page, at the arena's present mark. */
void couch_key_page_init(struct couch_key_page *page, struct arena *arena);
/* The key at the position `at`, valid until the next call, which frees what the arena got since. */
MUST_USE enum status couch_key_page_turn(struct couch_key_page *page, const struct json_list *keys,
					 size_t at, struct arena *arena, struct json_value **ret);

#endif
