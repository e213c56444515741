/*
 * A long JSON array whose elements are read a page at a time.
 *
 * The list borrows the array's text and keeps one offset for each page, so that a request may name
 * a million keys and hold little more than their text. The pages can be read in any order. Plain
 * functions: threads may use them at the same time with lists of their own.
 */
#ifndef FROND_DOC_JSON_LIST_H
#define FROND_DOC_JSON_LIST_H

#include "doc/json_value.h"

enum {
	JSON_LIST_PAGE = 128, /* elements of a page; the last page may have fewer */
};

struct json_list {
	struct str text; /* the array's */
	size_t count;    /* of elements */
	size_t *offsets; /* private: where each page begins in the text */
	size_t pages;
};

/*
 * Counts the elements and checks the text. The offsets lie in the arena. STATUS_INVALID for a value
 * that is no array, and the reader's errors.
 */
MUST_USE enum status json_list_init(struct json_list *list, const struct json_value *array,
				    struct arena *arena, struct err *err);

/* Reads the elements of a page, `page` < pages. What they need of memory lies in the arena. */
MUST_USE enum status json_list_page(const struct json_list *list, size_t page, struct arena *arena,
				    struct json_value ret[JSON_LIST_PAGE], size_t *ret_count);

#endif
