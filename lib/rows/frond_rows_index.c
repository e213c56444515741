/* frond-rows: indexes. */
#include "frond_rows_bytes.h"

enum {
	REQUEST_INDEXES = 22,
	REQUEST_INDEX_CREATE = 23,
	REQUEST_INDEX_BUILD = 24,
	REQUEST_INDEX_DROP = 25,
	REQUEST_INDEX_FIND = 26,

	INDEX_UNIQUE = 1,
	INDEX_READY = 2,
	INDEX_FAILED = 4,
	INDEX_KNOWN = 8,
	INDEX_GROUPS = 16,

	PART_BYTES = 4, /* in an answer: of what an array here has an element of, at least */
};

/* The size of the largest element. */
#define ELEMENT_BYTES sizeof(struct frows_condition)

/* ---- Told ---- */

/* Room that was made for elements of arrays. */
struct room {
	char *at;
	size_t left;
};

static void *
room_take(struct reader *r, struct room *room, size_t count, size_t size)
{
	void *to = room->at;

	if (count > r->left / PART_BYTES || count * ELEMENT_BYTES > room->left) {
		r->bad = true;
		return NULL;
	}
	room->at += count * ELEMENT_BYTES;
	room->left -= count * ELEMENT_BYTES;
	memset(to, 0, count * size);
	return to;
}

static void
take_index(struct reader *r, struct room *room, struct frows_index *ret)
{
	struct frows_index_column *columns;
	struct frows_condition *conditions;
	uint32_t *included;
	unsigned flags;

	ret->number = (uint32_t)take_int(r, 4);
	ret->name = take_text(r);
	flags = (unsigned)take_int(r, 1);
	ret->unique = flags & INDEX_UNIQUE;
	ret->ready = flags & INDEX_READY;
	ret->failed = flags & INDEX_FAILED;
	ret->known = flags & INDEX_KNOWN;
	ret->groups = flags & INDEX_GROUPS;
	ret->count = take_int(r, 1);
	ret->columns = columns = room_take(r, room, ret->count, sizeof(*columns));
	for (size_t i = 0; columns && i < ret->count; i++) {
		columns[i].id = (uint32_t)take_int(r, 4);
		flags = (unsigned)take_int(r, 1);
		columns[i].descending = flags & FROWS_FLAG_DESCENDING;
		columns[i].ordered = flags & FROWS_FLAG_ORDERED;
	}
	ret->included_count = take_int(r, 1);
	ret->included = included = room_take(r, room, ret->included_count, sizeof(*included));
	for (size_t i = 0; included && i < ret->included_count; i++)
		included[i] = (uint32_t)take_int(r, 4);
	ret->condition_count = take_int(r, 1);
	ret->conditions = conditions = room_take(r, room, ret->condition_count,
						 sizeof(*conditions));
	for (size_t i = 0; conditions && i < ret->condition_count; i++) {
		conditions[i].column = (uint32_t)take_int(r, 4);
		conditions[i].op = (enum frows_condition_op)take_int(r, 1);
		conditions[i].value = take_value(r);
	}
}

bool
frows_indexes(struct frows *c, const char *schema, const char *table, struct frows_indexes *ret)
{
	size_t count, room_bytes;
	struct reader r;
	struct room room;
	uint8_t *body;

	*ret = (struct frows_indexes){ 0 };
	if (!frows_run_names(c, REQUEST_INDEXES, schema, table, true))
		return false;
	count = take_int(&c->read, 2);
	room_bytes = c->read.left / PART_BYTES * ELEMENT_BYTES;
	/* The indexes, what they consist of, and behind it the bytes that these refer to. */
	ret->memory = calloc(1, count * sizeof(*ret->all) + room_bytes + c->read.left + 1);
	if (!ret->memory)
		return frows_fail_memory(c);
	ret->all = ret->memory;
	ret->count = count;
	room = (struct room){ (char *)(ret->all + count), room_bytes };
	body = (uint8_t *)room.at + room_bytes;
	memcpy(body, c->read.at, c->read.left);
	r = (struct reader){ body, c->read.left, c->read.bad };
	for (size_t i = 0; i < count && !r.bad; i++)
		take_index(&r, &room, &ret->all[i]);
	c->read.bad |= r.bad;
	if (frows_taken(c))
		return true;
	frows_indexes_free(ret);
	return false;
}

void
frows_indexes_free(struct frows_indexes *x)
{
	free(x->memory);
	*x = (struct frows_indexes){ 0 };
}

/* ---- Made, dropped ---- */

bool
frows_index_create(struct frows *c, const struct frows_of *of, const struct frows_index *index,
		   const char *spec, uint32_t *ret)
{
	struct bytes *b = &c->out;

	frows_make_request(c, REQUEST_INDEX_CREATE);
	frows_put_of(b, of);
	put_int(b, index->name.len, 2);
	put(b, index->name.ptr, index->name.len);
	put_int(b, index->unique ? INDEX_UNIQUE : 0, 1);
	put_int(b, index->count, 1);
	for (size_t i = 0; i < index->count; i++) {
		put_int(b, index->columns[i].id, 4);
		put_int(b, index->columns[i].descending ? FROWS_FLAG_DESCENDING : 0, 1);
	}
	put_int(b, index->included_count, 1);
	for (size_t i = 0; i < index->included_count; i++)
		put_int(b, index->included[i], 4);
	put_int(b, index->condition_count, 1);
	for (size_t i = 0; i < index->condition_count; i++) {
		put_int(b, index->conditions[i].column, 4);
		put_int(b, index->conditions[i].op, 1);
		put_value(b, index->conditions[i].value);
	}
	put_text(b, spec);
	if (!frows_run(c))
		return false;
	*ret = (uint32_t)take_int(&c->read, 4);
	return frows_taken(c);
}

bool
frows_index_build(struct frows *c, const struct frows_of *of, uint32_t number, bool *ret_ready,
		  bool *ret_failed)
{
	unsigned flags;

	frows_make_request(c, REQUEST_INDEX_BUILD);
	frows_put_of(&c->out, of);
	put_int(&c->out, number, 4);
	if (!frows_run(c))
		return false;
	flags = (unsigned)take_int(&c->read, 1);
	*ret_ready = flags & INDEX_READY;
	*ret_failed = flags & INDEX_FAILED;
	c->left = 1;
	return frows_taken(c);
}

bool
frows_index_drop(struct frows *c, const char *schema, const char *index)
{
	return frows_run_names(c, REQUEST_INDEX_DROP, schema, index, true);
}

bool
frows_index_find(struct frows *c, const char *schema, const char *index)
{
	if (!frows_run_names(c, REQUEST_INDEX_FIND, schema, index, true))
		return false;
	c->left = 1;
	return frows_taken(c);
}
