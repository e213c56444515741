/*
 * What targets share whose input is documents of BSON behind each other.
 */
#ifndef FROND_FUZZ_DOCUMENTS_H
#define FROND_FUZZ_DOCUMENTS_H

#include "bson/bson.h"
#include "look.h"

/* Takes the next valid document off the input; false if there is none. */
static inline bool
take_document(struct str *rest, struct str *ret)
{
	size_t len = bson_length(*rest);

	*ret = (struct str){ rest->ptr, len };
	if (!len || bson_check(*ret, NULL) != STATUS_OK)
		return false;
	*rest = str_skip(*rest, len);
	return true;
}

#endif
