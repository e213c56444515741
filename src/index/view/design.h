/*
 * The views of a design document: the maps, the reduces of each map, and the signature. Design
 * documents with equal signatures share one group.
 *
 * Views of one design document with the same map function and collation share their rows. A view is
 * therefore the number of a map, and the number of one of its reduces if it has a reduce.
 *
 * Plain values; everything is in the arena of view_design_parse(). Threading: none of its own.
 */
#ifndef FROND_INDEX_VIEW_DESIGN_H
#define FROND_INDEX_VIEW_DESIGN_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

enum {
	VIEW_SIGNATURE_BYTES = 16,
	VIEW_VIEWS_MOST = 64, /* of a design document: what one call of a worker takes */
	VIEW_TOP_MOST = 100,  /* N of _top_N and _bottom_N, as in CouchDB */
	VIEW_NO_REDUCE = -1,
};

enum view_reducer {
	VIEW_REDUCE_FUNCTION, /* the design document's own */
	VIEW_REDUCE_SUM,
	VIEW_REDUCE_COUNT,
	VIEW_REDUCE_STATS,
	VIEW_REDUCE_DISTINCT, /* _approx_count_distinct */
	VIEW_REDUCE_FIRST,
	VIEW_REDUCE_LAST,
	VIEW_REDUCE_TOP,
	VIEW_REDUCE_BOTTOM,
};

/* How the keys of a view's rows are ordered. */
enum view_collation {
	VIEW_COLLATION_DEFAULT, /* texts as ICU orders them */
	VIEW_COLLATION_RAW,     /* "options": {"collation": "raw"}: DOC_KEY_RAW */
};

struct view_reduce {
	enum view_reducer kind;
	unsigned n;      /* of _top_N and _bottom_N */
	struct str name; /* a view that has it: what a worker knows it by */
	struct str source;
};

struct view_map {
	struct str name; /* a view that has it: what a worker knows it by */
	struct str source;
	enum view_collation collation;
	struct view_reduce *reduces;
	size_t reduce_count;
};

struct view_view {
	struct str name;
	size_t map; /* in `maps` */
	int reduce; /* in that map's `reduces`; VIEW_NO_REDUCE */
};

struct view_design {
	uint8_t signature[VIEW_SIGNATURE_BYTES];
	struct str language; /* "javascript", unless the document says another */
	struct view_map *maps;
	size_t map_count;
	struct view_view *views; /* by name */
	size_t view_count;
	/* Of "options". */
	bool include_design; /* design documents are mapped, too */
	bool local_seq;      /* documents come with _local_seq */
	bool autoupdate;     /* false: nothing is built before the first request */
	bool partitioned;    /* rows are kept by partition; see view_design_parse() */
	struct str text;     /* what was parsed; borrowed */
};

/*
 * Reads the "views", "language" and "options" of a design document's JSON text, which the result
 * borrows. `partitioned_db`: the database has partitions. Its views are then partitioned unless
 * "options" says "partitioned": false; in other databases views never are.
 *
 * Without views, `view_count` is 0 and the status STATUS_OK. Members of "views" whose "map" is not
 * a string are skipped, "lib" among them. The content of "lib" is part of the signature.
 *
 * STATUS_INVALID, explained: "views" is not an object; a reduce that begins with an underscore is
 * not a known built-in; a view's collation is neither "default" nor "raw"; or the design document's
 * own "options" has a collation, which only views may have. STATUS_LIMIT, explained: more than
 * VIEW_VIEWS_MOST views; not explained: the arena is full. The failures of the JSON reader.
 */
MUST_USE enum status view_design_parse(struct str text, bool partitioned_db, struct arena *arena,
				       struct view_design *ret, struct err *err);

/*
 * Sets kind, n and source of a reduce, which borrows the source. As in CouchDB, a built-in one is
 * known by how its name begins, and what follows is passed over ("_sum\n"); but for the number that
 * ends _top_N and _bottom_N.
 *
 * STATUS_INVALID, explained in CouchDB's words: an unknown built-in reduce, a number that is none.
 */
MUST_USE enum status view_reduce_parse(struct str source, struct view_reduce *ret, struct err *err);

/* The view of that name; NULL. */
const struct view_view *view_design_find(const struct view_design *design, struct str name);

/* The reduce of a view; NULL if it has none. */
const struct view_reduce *view_design_reduce(const struct view_design *design,
					     const struct view_view *view);

#endif
