/*
 * Answers of workers: their form is checked as a whole when they arrive, so that reading them later
 * cannot fail. A worker may be hostile.
 */
#ifndef FROND_JS_ANSWER_H
#define FROND_JS_ANSWER_H

#include "js/wire.h"

/* What an answer has to fit. */
struct answer_shape {
	enum wire_kind kind;
	size_t elements;  /* of the batch */
	size_t functions; /* of MAP and REDUCE */
};

/*
 * True if `payload` is what DONE may carry for such a call: it covers at least one element of the
 * batch, unless the batch is empty, and has nothing behind its last one.
 */
bool answer_is_good(const struct answer_shape *shape, struct str payload);

/* The same of ERROR; sets both texts, which point into the payload. */
bool answer_read_error(struct str payload, struct str *ret_name, struct str *ret_reason);

#endif
