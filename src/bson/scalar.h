/*
 * BSON's values as the scalars of leaves and of keys (doc/scalar.h), and back. Each value but a
 * document or an array has one scalar, which gives it back bit for bit.
 *
 * Plain functions. Texts are borrowed, as those of a value are.
 */
#ifndef FROND_BSON_SCALAR_H
#define FROND_BSON_SCALAR_H

#include "bson/bson.h"
#include "doc/scalar.h"

/*
 * A document and an array become DOC_EMPTY_OBJECT and DOC_EMPTY_ARRAY, which is what a leaf has for
 * one without elements, and what doc_key_member() takes for any.
 */
void bson_to_scalar(const struct bson_value *v, struct doc_scalar *ret);

/* STATUS_CORRUPT for a kind that BSON does not have. */
MUST_USE enum status bson_of_scalar(const struct doc_scalar *s, struct bson_value *ret);

#endif
