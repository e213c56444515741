/*
 * Keys of views. README.md has all of them.
 *
 * A row's key, without the prefix of its map, is the row's place: (partition if the group is
 * partitioned, component of its key, document's id, ordinal). Rows of equal keys come by id, and
 * those of one document by their values (order.h). The sums of level 1 and above have
 * the place of the first row that they cover; the first of each level has an empty place.
 *
 * Plain functions on the caller's buffers.
 */
#ifndef FROND_INDEX_VIEW_KEYS_H
#define FROND_INDEX_VIEW_KEYS_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "catalog/keys.h"
#include "index/view/view.h"
#include "index/work.h"

enum {
	/* The subspace (P, VIEW_SPACE, …). Stored: never renumber. */
	VIEW_SPACE = 14,

	VIEW_KEYS_NUMBER = 0, /* (): the number that the next group gets */
	VIEW_KEYS_NAMES = 1,  /* (signature, collator): the group's number */
	VIEW_KEYS_GROUPS = 2, /* (group): its record */
	VIEW_KEYS_ROWS = 3,   /* (group, map, level, place…) */
	VIEW_KEYS_DOCS = 4,   /* (group, id, n): the rows of a document */
	VIEW_KEYS_TEXTS = 5,  /* (group, map, place…, n): a chunk of a large row's texts */
	VIEW_KEYS_LACKS = 6,  /* (group, map, id): what a map lacks of a document */

	VIEW_FANOUT_BITS = 5, /* a sum covers 32 of the level below, on average */
	VIEW_LEVELS = 6,      /* of sums: 32^6 rows before the highest has more than some */
};

void view_key_number(struct buf *key, const struct catalog_db *db);
void view_key_name(struct buf *key, const struct catalog_db *db,
		   const uint8_t signature[VIEW_SIGNATURE_BYTES], struct str collator);
/* (P, VIEW_SPACE, kind), and (P, VIEW_SPACE, kind, group): prefixes, and the key of a record. */
void view_key_kind(struct buf *key, const struct catalog_db *db, uint64_t kind);
void view_key_group(struct buf *key, const struct catalog_db *db, uint64_t kind, uint64_t group);
/* (P, VIEW_SPACE, VIEW_KEYS_ROWS, group, map, level), behind which places follow. */
void view_key_level(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
		    unsigned level);
void view_key_doc(struct buf *key, const struct catalog_db *db, uint64_t group, struct str id);
void view_key_lack(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
		   struct str id);
void view_key_text(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
		   struct str place, uint64_t n);

/* True if the text is one JSON value: what a worker has written is input from outside. */
bool view_text_is_json(struct str text);

/* The end of all keys that begin with `prefix`: appended to `end`. */
MUST_USE enum status view_prefix_end(struct str prefix, struct buf *end);
/*
 * Appends to `lo` and `hi` the range of keys of a level's places from `begin` to before `end`;
 * `end` empty: to the last one. `*ret_prefix_len`: the bytes of those keys before a place.
 */
MUST_USE enum status view_key_places(const struct catalog_db *db, uint64_t group, size_t map,
				     unsigned level, struct str begin, struct str end,
				     struct buf *lo, struct buf *hi, size_t *ret_prefix_len);

/* ---- Places ---- */

/*
 * Appends the component of the key that a map has emitted. Failures:
 * index_json_component_of_text().
 */
MUST_USE enum status view_component(struct buf *raw, enum view_collation collation,
				    struct str key_text, struct index_work *w);
/* `partition`: of a partitioned group, what the id has before its first colon; ptr NULL: none. */
void view_place_put(struct buf *place, struct str partition, struct str component, struct str id,
		    uint64_t ordinal);
struct str view_partition_of(struct str id);

/* A place taken apart. `component` is the element as it lies in the key. */
struct view_place {
	struct str component; /* from the element's first byte to its last */
	size_t component_at;  /* where it begins in the place */
	struct str id;
	uint64_t ordinal;
};

MUST_USE enum status view_place_parse(struct str place, bool partitioned, struct arena *arena,
				      struct view_place *ret);

/* The highest level whose sums have one that begins at this row; 0 for most. */
unsigned view_place_level(const uint8_t seed[16], struct str place);

/*
 * How much of a place tells the rows of one group of results: all up to and with the component
 * (level VIEW_LEVEL_EXACT), or in a component that is an array, up to its first `level` elements;
 * 0 for one group of all. Rows of a group have these bytes in common, and no others have.
 */
MUST_USE enum status view_place_group(const struct view_place *place, struct str bytes,
				      unsigned level, size_t *ret_len);

#endif
