#include "base/callouts.h"

#include <string.h>

enum {
	CALLOUTS_DENSE_BYTES = 7000, /* of a pattern that has room for all of them */
	CALLOUTS_CHARS = 8,          /* from one of a longer pattern to the next */
};

bool
callouts_are_sparse(struct str pattern)
{
	if (pattern.len <= CALLOUTS_DENSE_BYTES)
		return false;
	for (size_t i = 0; i < pattern.len; i++) {
		if (strchr("\\[(){*+?", pattern.ptr[i]))
			return false;
	}
	return true;
}

struct str
callouts_put(struct str pattern, struct arena *arena)
{
	static const char callout[] = "(?C)";
	const size_t more = sizeof(callout) - 1;
	char *bytes = arena_alloc(arena, pattern.len + (pattern.len / CALLOUTS_CHARS + 1) * more);
	size_t chars = 0, len = 0;

	for (size_t i = 0; bytes && i < pattern.len; i++) {
		bool is_first = (pattern.ptr[i] & 0xc0) != 0x80; /* byte of a character */

		if (is_first && chars++ % CALLOUTS_CHARS == 0) {
			memcpy(bytes + len, callout, more);
			len += more;
		}
		bytes[len++] = pattern.ptr[i];
	}
	return (struct str){ bytes, len };
}
