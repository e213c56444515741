/*
 * Any bytes as a HyperLogLog to which elements are added: whatever it is, nothing is touched behind
 * its room. One that is sound has the same registers as its dense form, before and afterwards, and
 * an element that was added changes nothing when it is added again.
 */
#include <stdlib.h>

#include "door/redis/wire/hyperloglog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ELEMENTS = 8,
	ELEMENT_BYTES = 4,
	HEAD_BYTES = 2 + ELEMENTS * ELEMENT_BYTES,
};

static uint8_t scratch[HLL_REGISTERS];

static void
must(bool good)
{
	if (!good)
		abort();
}

/* A copy in memory of its own, as large as the door makes it. */
static struct hll
hll_copy(struct str bytes, size_t most)
{
	size_t room = HLL_DENSE_BYTES;
	struct hll h = { .len = bytes.len, .scratch = scratch };

	room = room > bytes.len ? room : bytes.len;
	room = room > most ? room : most;
	h.room = room + HLL_SPARE_BYTES;
	h.bytes = calloc(1, h.room);
	must(h.bytes);
	memcpy(h.bytes, bytes.ptr, bytes.len);
	return h;
}

/* False: it is none. */
static bool
registers_of(const struct hll *h, uint8_t *ret)
{
	memset(ret, 0, HLL_REGISTERS);
	return hll_merge(h, ret);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t sparse[HLL_REGISTERS], dense[HLL_REGISTERS];
	struct hll h, other;
	struct str bytes;
	bool sound;
	size_t most;

	if (size < HEAD_BYTES || size - HEAD_BYTES > HLL_BYTES)
		return 0;
	most = (size_t)data[0] << 8 | data[1];
	bytes = str_of(data + HEAD_BYTES, size - HEAD_BYTES);
	if (!hll_is_sound(bytes))
		return 0;
	h = hll_copy(bytes, most);
	other = hll_copy(bytes, most);
	sound = registers_of(&h, sparse);
	must(hll_make_dense(&other) == sound);
	for (size_t i = 0; i < ELEMENTS; i++) {
		struct str element = str_of(data + 2 + i * ELEMENT_BYTES, ELEMENT_BYTES);
		enum hll_change first = hll_add(&h, element, most), second;

		if (first == HLL_UNSOUND) {
			must(!sound);
			break;
		}
		second = hll_add(&h, element, most);
		must(!sound || second == HLL_SAME);
		if (sound)
			must(hll_add(&other, element, most) == first);
	}
	if (sound) {
		must(registers_of(&h, sparse) && registers_of(&other, dense));
		must(memcmp(sparse, dense, sizeof(dense)) == 0);
		must(hll_count(sparse) == hll_count(dense));
	}
	free(h.bytes);
	free(other.bytes);
	return 0;
}
