/* Dotted paths of changes, and why they cannot be gone. Steps are borrowed from the text. */
#ifndef FROND_MODEL_PLAIN_PATH_H
#define FROND_MODEL_PLAIN_PATH_H

#include "model/plain/plain.h"

struct plain_path {
	struct str steps[PLAIN_PATH_STEPS];
	size_t count;
};

/* STATUS_INVALID, explained: an empty name, too many steps, the `_id`. */
MUST_USE enum status plain_path_parse(struct str text, struct plain_path *ret, struct err *err);

/* Explains that a step leads into a scalar. */
MUST_USE enum status plain_path_fail_scalar(const struct plain_path *path, size_t step,
					    struct err *err);

/* The position that a step into an array of `count` elements means. STATUS_INVALID, explained. */
MUST_USE enum status plain_path_check_position(const struct plain_path *path, size_t step,
					       uint64_t count, uint32_t *ret, struct err *err);

#endif
