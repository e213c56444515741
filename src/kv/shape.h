/*
 * The shape of a store: which of its keys belong together and are looked for together, such as all
 * rows of a document. Whoever opens a store describes it, since only the layers above know; the
 * embedded engine then gives RocksDB's filters the beginnings that such keys have in common, so
 * that looking for something that is not there costs a few probes.
 *
 * A key is a tuple whose second element is the number of a subspace. Each subspace says of which
 * kinds the elements behind its number are that a key must have to belong to an entity; its entity
 * is the key up to the last of them. A key that lacks one of them belongs to none.
 *
 * What a shape says of a subspace is about keys on disk. It may be extended by subspaces, at the
 * cost that tables of before are looked up without the filters of entities until they are written
 * anew; so it may be changed, too, and reads stay right in any case (kv/README.md says why).
 */
#ifndef FROND_KV_SHAPE_H
#define FROND_KV_SHAPE_H

#include "kv/tuple.h"

enum {
	KV_ENTITY_ELEMENTS = 6,
	KV_SHAPE_SPACES = 16,
	KV_SHAPE_SPACE_MOST = 255, /* the largest number of a subspace that can have an entry */
};

struct kv_entity {
	uint8_t element_count; /* 0: keys of the subspace belong to no entity */
	enum tuple_skip elements[KV_ENTITY_ELEMENTS];
};

struct kv_shape_space {
	uint64_t space;
	struct kv_entity entity;
};

/* Never changes, and lasts as long as a store that was opened with it. */
struct kv_shape {
	struct kv_entity others; /* of all subspaces that have no entry */
	size_t space_count;
	struct kv_shape_space spaces[KV_SHAPE_SPACES]; /* in ascending order */
};

#endif
