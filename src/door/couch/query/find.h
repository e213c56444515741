/*
 * One run of a query: what it has read, matched and sent so far. It belongs to its request's fiber.
 *
 *     find.c       the handler: the head and the tail of the answer
 *     find_ids.c   documents in the order of their ids
 *     find_index.c documents in the order of an index
 *     find_sets.c  ids that are in several indexes
 *     find_sort.c  documents that are sorted before they are sent
 *     find_doc.c   one document: matched, and written
 *     find_aggregate.c  what is computed of documents, in groups
 */
#ifndef FROND_DOOR_COUCH_QUERY_FIND_H
#define FROND_DOOR_COUCH_QUERY_FIND_H

#include "doc/packed.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/seen.h"
#include "door/couch/query/bookmark.h"
#include "door/couch/query/find_args.h"
#include "door/couch/query/id_range.h"
#include "door/couch/query/plan.h"
#include "door/couch/wire/stream.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"

/* The members of a document that somebody looks at: not the others have to be decoded. */
struct find_members {
	bool whole;    /* all of the body */
	unsigned seen; /* bits of enum couch_seen_member */
	struct doc_member *members;
	size_t count;
};

struct find;
struct find_doc;

/* How the answer is got. */
enum find_way {
	FIND_WAY_DOCUMENTS, /* documents are shown; the others are those of find_aggregate.h */
	FIND_WAY_COUNTED,
	FIND_WAY_STREAMED,
	FIND_WAY_GATHERED,
};

/* What becomes of a document that matches. */
typedef enum status find_take(struct find *f, const struct find_doc *d);

struct find {
	struct couch_req *r;
	struct find_args args;
	struct query_indexes indexes;
	struct plan plan;
	struct bookmark after; /* of the page before */
	bool has_after;
	const struct selector *filter; /* of the chosen index, if it is partial */
	struct find_members filtered;  /* what that looks at */
	find_take *take;
	struct find_sorter *sorter; /* of find_sort.c */
	bool sort_is_full;          /* the sort needs more than [mango] sort_bytes */
	struct find_groups *groups; /* of find_aggregate.c */
	enum find_way way;
	uint64_t counted;        /* of find_aggregate.c: documents */
	const struct plan *ends; /* likewise: the index from whose end each function is read */
	bool entry_is_cut;       /* of find_index.c: a value of the document's entry is too long */
	/* The ids that find_by_ids() is confined to, in byte order, if `listed`. */
	bool listed;
	const struct str *list;
	size_t list_count;
	struct arena *list_arena;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	struct find_members matched; /* what the selector looks at */
	struct find_members shown;   /* what the list of fields shows */
	bool any_row;
	uint64_t skip;  /* left to be skipped */
	uint64_t limit; /* left to be sent */

	/* The place of the last document that was skipped or sent. */
	struct buf id;
	struct buf place; /* in the index; empty in the order of ids */
	bool has_id;

	uint64_t began_ns;
	uint64_t keys; /* entries of the index that were read */
	uint64_t docs; /* documents that were read */
	uint64_t results;
};

/* Compiles what find_doc_take() needs to know about the selector, the filter and the fields. */
MUST_USE enum status find_doc_init(struct find *f);

/* A document to be matched, as a list has brought it. */
struct find_doc {
	struct str id;
	struct rev_doc *doc;
	const struct rev_tree *tree; /* with `conflicts` */
	bool is_entry;               /* `doc` has the columns of the chosen index, and no others */
};

/* *ret is true if the document matches. The arena may hold more afterwards. */
MUST_USE enum status find_doc_matches(struct find *f, const struct find_doc *d, bool *ret);

/* Skips a document that matches, or appends it to the answer. Nothing is sent here. */
MUST_USE enum status find_doc_take(struct find *f, const struct find_doc *d);

/* The document with these members, as selectors see it. */
MUST_USE enum status find_doc_see(struct find *f, const struct find_doc *d,
				  const struct find_members *members, struct couch_seen *seen,
				  struct selector_doc *ret);

/* Prepares the members that the paths lead into. */
MUST_USE enum status find_members_of_paths(struct find *f, const struct normal_path *paths,
					   size_t count, struct find_members *ret);

/* Follows a path down from a document, of which find_doc_see() has made the member. */
MUST_USE enum status find_doc_value(const struct selector_doc *doc, const struct normal_path *path,
				    struct leaf_value *ret, bool *ret_found);

/* Refuses to go on past one of the limits of a scan. Called for each document. */
MUST_USE enum status find_check_limits(struct find *f);

/*
 * Sends the documents of a range of ids that match, until the limit or the end is reached. With
 * f->list only those of its ids that lie in the range.
 */
MUST_USE enum status find_by_ids(struct find *f, struct name_range range);

/*
 * Gathers the ids that the plan reads from several indexes, their union or their intersection, and
 * answers list by list. If they take more memory than [mango] sort_bytes, all documents are read.
 */
MUST_USE enum status find_by_sets(struct find *f, struct name_range range);

/*
 * The same for a query whose order is not that of ids: reads them all, keeps those of the page, as
 * far as [mango] sort_bytes allows, and sends them in the order of the sort.
 */
MUST_USE enum status find_sorted(struct find *f, struct name_range range);

/*
 * Makes a bookmark's place among sorted documents a place in the chosen index, which has the same
 * order. `*ret_known` is false where values that were cut have no place of their own there.
 */
MUST_USE enum status find_turn_place(struct find *f, bool *ret_known);

/* The same from the entries of the chosen index, in its order. */
MUST_USE enum status find_indexed(struct find *f);

/*
 * Makes f->counted the number of entries in those of the plan's ranges that have matches only: by
 * the counters of ranges, or by reading where there are few. Then f->take gets the documents of the
 * other ranges that match.
 */
MUST_USE enum status find_count_indexed(struct find *f);

#endif
