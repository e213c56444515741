#include "base/little_endian.h"
#include "kv/tuple.h"
#include "model/timed/items/blocks_check.h"

/* How many entries a pair of the level below has; what cannot be read is told by others. */
static uint64_t
below_entries(const struct blocks_check *c)
{
	struct str value = c->below.pair.value;
	struct timed_run run;

	if (c->level > 1)
		return value.len == sizeof(uint64_t) ? little_endian_64(value.ptr) : 0;
	if (!c->is_list || !timed_is_run(value))
		return 1;
	return timed_run_parse(value, &run) == STATUS_OK ? run.count : 0;
}

static void
block_finish(struct blocks_check *c)
{
	if (!c->wrong && c->counts != c->has) {
		c->wrong = true;
		c->wrong_counts = c->counts;
		c->wrong_has = c->has;
	}
	c->counts = c->has = 0;
}

/* Goes on in the level below to the order, or to its end if that is empty. */
static enum status
below_pass(struct catalog_verify *v, struct blocks_check *c, struct str order)
{
	while (!c->below.done && (!order.len || str_cmp(c->below.tail, order) < 0)) {
		c->has += below_entries(c);
		TRY(catalog_verify_cursor_next(v, &c->below));
	}
	return STATUS_OK;
}

static enum status
level_begin(struct catalog_verify *v, struct blocks_check *c, struct str body, unsigned level)
{
	buf_clear(&v->key);
	buf_append_str(&v->key, body);
	tuple_put_u64(&v->key, level > 1 ? TIMED_PART_BLOCKS : TIMED_PART_ORDER);
	if (level > 1)
		tuple_put_u64(&v->key, level - 1);
	c->level = level;
	c->wrong = false;
	c->counts = c->has = 0;
	c->is_open = true;
	return catalog_verify_cursor_open_at(v, &c->below);
}

enum status
blocks_check_take(struct catalog_verify *v, struct blocks_check *c, struct str body, unsigned level,
		  struct str order, uint64_t counts)
{
	struct tuple_reader r = tuple_reader(order);
	struct tuple_elem begins;

	if (!c->level)
		TRY(level_begin(v, c, body, level));
	TRY(below_pass(v, c, order));
	block_finish(c);
	c->counts = counts;
	/* The first block of a level begins with no entry. */
	if (tuple_next(&r, &begins) == STATUS_OK && begins.kind == TUPLE_BYTES && !begins.raw.len)
		return STATUS_OK;
	if (!c->wrong && (c->below.done || !str_eq(c->below.tail, order))) {
		c->wrong = true;
		c->wrong_counts = counts;
		c->wrong_has = 0;
	}
	return STATUS_OK;
}

enum status
blocks_check_end(struct catalog_verify *v, struct blocks_check *c)
{
	TRY(below_pass(v, c, STR("")));
	block_finish(c);
	blocks_check_release(c);
	return STATUS_OK;
}

void
blocks_check_release(struct blocks_check *c)
{
	if (c->is_open)
		catalog_verify_cursor_close(&c->below);
	/* The next level may fail before it has a cursor. */
	c->below = (struct catalog_verify_cursor){ 0 };
	c->is_open = false;
	c->level = 0;
}
