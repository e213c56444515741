/* Any bytes as a definition of an index: what is read is written as the same bytes. */
#include <stdlib.h>

#include "index/engine/def.h"

enum {
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct buf again = BUF_INIT(MAX_BYTES);
	struct index_def def;

	if (!arena)
		abort();
	if (index_def_parse(str_of(data, size), arena, &def, NULL) == STATUS_OK) {
		(void)index_def_put(&again, &def);
		if (!str_eq(buf_str(&again), str_of(data, size)))
			abort();
	}
	buf_release(&again);
	arena_free(arena);
	return 0;
}
