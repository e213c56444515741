/*
 * Any bytes as a paging state of Cassandra's clients: what is read lies within them and is written
 * again as it was, and a state of another statement is refused.
 */
#include <stdlib.h>

#include "base/big_endian.h"
#include "door/cql/run/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	OWNER_AT = 1,
	OWNER_BYTES = 8,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_release) struct buf again = BUF_INIT(size + 1024);
	struct str state = str_of((const char *)data, size);
	uint64_t owner = 0;
	struct page page;

	/* The statement that the state says it is of, so that the rest is read, too. */
	if (size >= OWNER_AT + OWNER_BYTES)
		owner = big_endian_64(data + OWNER_AT);
	if (page_read(state, owner + 1, &page) == STATUS_OK)
		abort();
	if (page_read(state, owner, &page) != STATUS_OK)
		return 0;
	if (page.place.len &&
	    (page.place.ptr < state.ptr || page.place.ptr + page.place.len > state.ptr + state.len))
		abort();
	page_put(&again, owner, &page);
	if (buf_status(&again) != STATUS_OK || !str_eq(buf_str(&again), state))
		abort();
	return 0;
}
