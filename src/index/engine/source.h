/*
 * A document that entries are made of, as its model has it. Nothing is built of it: the form
 * (form.h) finds values in it.
 *
 * Plain values, which borrow everything.
 */
#ifndef FROND_INDEX_ENGINE_SOURCE_H
#define FROND_INDEX_ENGINE_SOURCE_H

#include "kv/kv.h"

struct index_typed_row;

struct index_source {
	struct str id; /* as entries have it: of BSON the bytes of its key */
	/*
	 * The document as its form has it in one piece: BSON, of which only the members that an
	 * index looks at need be there, or JSON as doc/packed.h has it; ptr NULL: it is in leaves.
	 */
	struct str body;
	struct str rev; /* as clients write it; ptr NULL: there is none, or nobody knows */
	const struct kv_pair *leaves; /* as struct doc has them */
	size_t count;
	const struct index_typed_row *row; /* of a table, in place of both (index/typed/form.h) */
};

#endif
