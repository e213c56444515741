/*
 * Two numbers of any types: their keys compare as the numbers do, in exact decimals, and a key is
 * read back as the number. Any bytes as a number's key: what is read is its key in every byte. Any
 * bytes as a row of components: each one that is read has these bytes for its key.
 */
#include "../tests/doc/exact_number.h"
#include "doc/key_read.h"

enum {
	MAX_BYTES = 1 << 20,
	NUMBER_BYTES = 17, /* a type, and what it is made of */
	MAGNITUDE_BYTES = 16,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool good)
{
	if (!good)
		abort();
}

/* A number of NUMBER_BYTES bytes. Its magnitude lies in `magnitude`. */
static struct doc_scalar
number_of(const uint8_t *data, char magnitude[MAGNITUDE_BYTES])
{
	static const enum doc_kind kinds[] = { DOC_INT64,   DOC_DOUBLE,  DOC_DECIMAL128,
					       DOC_INTEGER, DOC_DECIMAL, DOC_FLOAT };
	struct doc_scalar s = { .kind = kinds[data[0] % 6] };
	uint64_t halves[2];
	size_t zeros = 0;

	memcpy(halves, data + 1, sizeof(halves));
	memcpy(magnitude, data + 1, MAGNITUDE_BYTES);
	while (zeros < MAGNITUDE_BYTES && !magnitude[zeros])
		zeros++;
	switch ((int)s.kind) {
	case DOC_INT64:
		s.n = (int64_t)halves[0];
		break;
	case DOC_DOUBLE:
		memcpy(&s.d, &halves[0], sizeof(s.d));
		break;
	case DOC_FLOAT:
		memcpy(&s.f, &halves[0], sizeof(s.f));
		break;
	case DOC_DECIMAL128:
		s.high = be64toh(halves[0]);
		s.low = be64toh(halves[1]);
		break;
	default:
		s.n = s.kind == DOC_DECIMAL ? (int8_t)data[0] : 0;
		s.text = str_of(magnitude + zeros, MAGNITUDE_BYTES - zeros);
		s.negative = s.text.len && data[0] & 0x80;
	}
	return s;
}

static void
check_read(const struct buf *key, const struct exact *e)
{
	struct buf scratch = BUF_INIT(MAX_BYTES);
	struct doc_key_number n;

	must(doc_key_read_number(buf_str(key), false, &scratch, &n) == STATUS_OK);
	must((n.form == DOC_KEY_NAN) == (e->sign == -2));
	must((n.form == DOC_KEY_ZERO) == (e->sign == 0));
	must((n.form == DOC_KEY_INFINITE) == e->infinite);
	must(e->sign == -2 || n.negative == (e->sign == -1));
	if (n.form == DOC_KEY_DECIMAL)
		must(n.exponent == e->exponent && n.digits.len == e->count &&
		     !memcmp(n.digits.ptr, e->digits, e->count));
	buf_release(&scratch);
}

static void
check_two(const uint8_t *data)
{
	static struct exact exact[2];
	char magnitudes[2][MAGNITUDE_BYTES];
	struct buf keys[2] = { BUF_INIT(MAX_BYTES), BUF_INIT(MAX_BYTES) };
	int expected;
	int found;

	for (int i = 0; i < 2; i++) {
		struct doc_scalar s = number_of(data + i * NUMBER_BYTES, magnitudes[i]);

		exact_of(&s, &exact[i]);
		must(doc_key_put(&keys[i], DOC_KEY_BSON, &s) == STATUS_OK);
		check_read(&keys[i], &exact[i]);
	}
	expected = exact_cmp(&exact[0], &exact[1]);
	found = str_cmp(buf_str(&keys[0]), buf_str(&keys[1]));
	must((found > 0) - (found < 0) == expected);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}

static void
check_components(struct str key, bool descending)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct doc_scalar read;
	size_t len;

	must(arena != NULL);
	while (doc_key_read(key, descending, arena, &read, &len) == STATUS_OK) {
		struct buf again = BUF_INIT(MAX_BYTES);

		must(doc_key_put(&again, DOC_KEY_TYPED, &read) == STATUS_OK);
		if (descending)
			doc_key_invert(&again, 0);
		must(str_eq(buf_str(&again), str_of(key.ptr, len)));
		buf_release(&again);
		key = str_skip(key, len);
		arena_clear(arena);
	}
	arena_free(arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf scratch = BUF_INIT(MAX_BYTES);
	struct doc_key_number n;

	if (size >= 2 * NUMBER_BYTES)
		check_two(data);
	if (doc_key_read_number(str_of(data, size), size && data[0] & 1, &scratch, &n) == STATUS_OK)
		must(n.form != DOC_KEY_DECIMAL || n.digits.len);
	buf_release(&scratch);
	check_components(str_of(data, size), false);
	check_components(str_of(data, size), true);
	return 0;
}
