#include "rdb/lzf.h"

#include "loop/step.h"
#include "rdb/bytes.h"

/*
 *     000nnnnn …                    n + 1 bytes as they are
 *     nnnddddd dddddddd             n + 2 bytes from d + 1 bytes before, n being 1 to 6
 *     111ddddd nnnnnnnn dddddddd    n + 9 bytes from there
 */
enum {
	LITERALS_MOST = 32,
	LENGTH_LONG = 7,
	COUNT_BYTES = 64 * 1024, /* that are made between two counts of steps */
};

/* Copies what is there already, which may overlap with what it makes. */
static bool
lzf_repeat(char *out, size_t at, size_t len, size_t back, size_t n)
{
	if (back > at || n > len - at)
		return false;
	for (size_t i = 0; i < n; i++)
		out[at + i] = out[at + i - back];
	return true;
}

enum status
rdb_lzf_expand(struct str in, char *out, size_t len)
{
	size_t at = 0, counted = 0;
	struct str s;

	while (bytes_take(&in, 1, &s)) {
		unsigned code = (uint8_t)s.ptr[0];
		size_t n = code >> 5, back;

		if (code < LITERALS_MOST) {
			n = code + 1;
			if (n > len - at || !bytes_take(&in, n, &s))
				return STATUS_INVALID;
			memcpy(out + at, s.ptr, n);
		} else {
			if (n == LENGTH_LONG) {
				if (!bytes_take(&in, 1, &s))
					return STATUS_INVALID;
				n += (uint8_t)s.ptr[0];
			}
			n += 2;
			if (!bytes_take(&in, 1, &s))
				return STATUS_INVALID;
			back = (size_t)((code & 0x1f) << 8 | (uint8_t)s.ptr[0]) + 1;
			if (!lzf_repeat(out, at, len, back, n))
				return STATUS_INVALID;
		}
		at += n;
		if (at - counted >= COUNT_BYTES) {
			TRY(step_count_bytes(at - counted));
			counted = at;
		}
	}
	return at == len ? STATUS_OK : STATUS_INVALID;
}
