#include "model/revisioned/shape.h"

#include "model/revisioned/revisioned_int.h"

const struct kv_shape rev_store_shape = {
	.others = { 1, { TUPLE_SKIP_TEXT } },
	.space_count = 2,
	.spaces = {
		{ REV_SUBSPACE_DOCUMENTS,
		  { 4, { TUPLE_SKIP_TEXT, TUPLE_SKIP_BOOL, TUPLE_SKIP_INT, TUPLE_SKIP_TEXT } } },
		{ REV_SUBSPACE_ENTRIES, { 2, { TUPLE_SKIP_INT, TUPLE_SKIP_TEXT } } },
	},
};
