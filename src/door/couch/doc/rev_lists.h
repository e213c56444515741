/*
 * The body of _revs_diff, _missing_revs and _purge: {"id": ["rev", …], …}, read in portions, so
 * that what is kept of it does not grow with its length.
 *
 * Before the first portion comes back, the whole body has been checked: a mistake anywhere in it
 * refuses the request before anything is done or sent. Belongs to the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_DOC_REV_LISTS_H
#define FROND_DOOR_COUCH_DOC_REV_LISTS_H

#include "doc/json.h"
#include "door/couch/wire/request.h"

/* Some revisions of one document. */
struct couch_rev_list {
	struct str id;
	struct rev_id *revs;
	size_t count;
	bool continues; /* the list of the portion before, whose last one this is */
	bool goes_on;   /* the next portion has more of the list */
};

/* All fields but the limits are private. */
struct couch_rev_lists {
	struct couch_req *r;
	size_t most_lists; /* in a portion */
	size_t most_revs;  /* likewise, but the last list may go beyond it, unless `cuts` */
	size_t most_bytes; /* likewise, of the ids, each counted for each revision */
	bool cuts;         /* a long list is cut; and no portion has one id twice */
	struct json_reader reader;
	struct buf id; /* of a list that goes on */
	bool goes_on;
	bool checked;
	bool ended;
};

/* Reads the body. The caller has set the limits; it releases `lists` also after a failure. */
MUST_USE enum status couch_rev_lists_begin(struct couch_rev_lists *lists, struct couch_req *r);
void couch_rev_lists_release(struct couch_rev_lists *lists);

/* A portion of the lists, in the request's arena, which is given back behind it. */
typedef enum status couch_rev_lists_take(void *arg, const struct couch_rev_list *lists,
					 size_t count);

/*
 * Takes portion by portion. A body without any list is a portion of none, so that such a request
 * still fails if there is no such database.
 */
MUST_USE enum status couch_rev_lists_each(struct couch_rev_lists *lists, couch_rev_lists_take *take,
					  void *arg);

#endif
