/*
 * Any bytes as requests of Redis's protocol: read as they come in one part or in two, they are the
 * same, and the arguments lie in what came or in the arena.
 */
#include <stdlib.h>

#include "door/redis/wire/glob.h"
#include "door/redis/wire/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 1024 * 1024,
};

static struct arena *arena;

/* Reads on; how many bytes the first request has, or 0. */
static size_t
read_on(struct request *r, struct str in, enum status *status)
{
	struct err err = { 0 };
	size_t need;

	*status = request_read(r, in, arena, &need, &err);
	if (*status == STATUS_NOT_FOUND && need <= in.len)
		abort();
	if (*status == STATUS_INVALID && !err.text[0])
		abort();
	return *status == STATUS_OK ? r->at : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_of(data, size);
	struct request whole, parts;
	enum status once, twice;
	struct str *argv;
	size_t len, len_parts;

	if (!arena)
		arena = arena_new(ARENA_BYTES);
	request_init(&whole, NULL);
	request_init(&parts, NULL);
	len = read_on(&whole, in, &once);
	len_parts = read_on(&parts, str_of(data, size / 2), &twice);
	if (twice == STATUS_NOT_FOUND)
		len_parts = read_on(&parts, in, &twice);
	if (once != twice || len != len_parts || len > size)
		abort();
	if (once == STATUS_OK && request_args(&whole, in, arena, &argv) == STATUS_OK)
		for (size_t i = 0; i + 1 < whole.expected; i += 2)
			(void)glob_matches(argv[i], argv[i + 1], i % 4 == 0);
	request_fini(&whole);
	request_fini(&parts);
	arena_clear(arena);
	return 0;
}
