/* Random documents with few names and few `_id`s, and paths into them. */
#ifndef FROND_TESTS_MODEL_PLAIN_RANDOM_PLAIN_H
#define FROND_TESTS_MODEL_PLAIN_RANDOM_PLAIN_H

#include "../../bson/random_bson.h"

enum {
	IDS = 12,
};

static inline struct bson_value
random_id(struct rand_seq *r)
{
	int64_t n = (int64_t)rand_seq_below(r, IDS);

	switch (rand_seq_below(r, 4)) {
	case 0:
		return BSON_OF_INT64(n);
	case 1:
		return BSON_OF_DOUBLE((double)n);
	case 2:
		return n % 2 ? BSON_OF_STRING(STR("text")) : BSON_OF_DATE(n);
	default:
		return BSON_OF_INT32(n);
	}
}

static inline struct str
random_name(struct rand_seq *r)
{
	static const char *const names[] = { "a", "b", "0", "1", "c", "long name" };

	return str_from_cstr(names[rand_seq_below(r, 6)]);
}

static inline struct str
random_plain_document(struct rand_seq *r, struct arena *arena, const struct bson_value *id)
{
	struct buf out = BUF_INIT(RANDOM_BSON_BYTES);
	struct bson_builder b;
	struct str doc;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("_id"), id);
	for (uint64_t n = rand_seq_below(r, 6); n > 0; n--) {
		struct bson_value v = random_value(r, arena, 3);

		bson_put(&b, random_name(r), &v);
	}
	if (rand_seq_below(r, 20) == 0) {
		char *text = arena_bytes(arena, 120000);

		memset(text, 'x', 120000);
		bson_put_string(&b, STR("much"), str_of(text, 120000));
	}
	bson_end(&b);
	doc = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

static inline struct str
random_path(struct rand_seq *r, struct arena *arena)
{
	struct buf out = BUF_INIT(1000);
	struct str path;

	for (uint64_t n = rand_seq_below(r, 3);; n--) {
		buf_append_str(&out, random_name(r));
		if (!n)
			break;
		buf_append_byte(&out, '.');
	}
	path = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return path;
}

#endif
