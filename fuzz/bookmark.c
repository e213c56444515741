/*
 * Any text as a bookmark: what is read is written again as it was, and bounds are kept.
 */
#include <stdlib.h>

#include "door/couch/query/bookmark.h"
#include "look.h"

enum {
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_release) struct buf again = BUF_INIT(MAX_BYTES);
	AUTO(buf_release) struct buf third = BUF_INIT(MAX_BYTES);
	struct arena *arena = arena_new(MAX_BYTES);
	struct bookmark b;
	enum status status;

	must(arena != NULL);
	status = bookmark_read(str_of(data, size), arena, &b);
	must(status == STATUS_OK || status == STATUS_INVALID);
	if (status == STATUS_OK) {
		struct bookmark c;

		bookmark_write(&b, &again);
		must(buf_status(&again) == STATUS_OK);
		must(bookmark_read(buf_str(&again), arena, &c) == STATUS_OK);
		must(str_eq(b.index, c.index) && str_eq(b.place, c.place) && str_eq(b.id, c.id));
		bookmark_write(&c, &third);
		must(str_eq(buf_str(&again), buf_str(&third)));
	}
	arena_free(arena);
	return 0;
}
