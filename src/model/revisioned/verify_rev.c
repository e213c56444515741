/* A revision as the keys of REVISIONS and DOCUMENTS have it, for the parts of the check. */
#include "model/revisioned/verify_int.h"

bool
verify_hash_next(struct tuple_reader *r, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return false;
	*ret = e.encoding;
	return true;
}

bool
verify_rev_parse(struct str tail, struct verify_rev *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str hash;
	const char *rev;
	bool not_deleted;
	uint64_t pos;

	if (!catalog_verify_text_next(&r, TUPLE_STRING, &ret->id) ||
	    tuple_next_bool(&r, &not_deleted) != STATUS_OK)
		return false;
	rev = r.rest.ptr;
	if (tuple_next_u64(&r, &pos) != STATUS_OK || pos == 0 || !verify_hash_next(&r, &hash))
		return false;
	ret->deleted = !not_deleted;
	ret->rev = str_of(rev, (size_t)(r.rest.ptr - rev));
	ret->encoding = str_of(tail.ptr, (size_t)(r.rest.ptr - tail.ptr));
	ret->rest = r.rest;
	return true;
}
