/*
 * Which keys of a store belong together, for whoever opens one (kv/shape.h).
 */
#ifndef FROND_MODEL_REVISIONED_SHAPE_H
#define FROND_MODEL_REVISIONED_SHAPE_H

#include "kv/shape.h"

/*
 * The rows of a document, by two numbers and its name; of its bodies each for itself, by the
 * revision as well. Stores on disk were written with it: see kv/shape.h before changing it.
 */
extern const struct kv_shape rev_store_shape;

#endif
