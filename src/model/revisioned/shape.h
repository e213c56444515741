/*
 * Which keys of a store belong together, for whoever opens one (kv/shape.h).
 */
#ifndef FROND_MODEL_REVISIONED_SHAPE_H
#define FROND_MODEL_REVISIONED_SHAPE_H

#include "kv/shape.h"

/*
 * The rows of a document, by two numbers and its name; of its bodies each for itself, by the
 * revision as well; the entries of an index by the index and the value of the first column. Stores
 * on disk were written with it: see kv/shape.h before changing it. Those that were written before
 * it had entries of indexes are read without filters of entities until their tables are written
 * anew.
 */
extern const struct kv_shape rev_store_shape;

#endif
