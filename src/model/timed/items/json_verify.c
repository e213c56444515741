/* Checking documents: that their leaves fit together, and that their texts are what is written. */
#include "base/utf8.h"
#include "model/timed/items/json_int.h"

void
json_check_begin(struct json_check *c)
{
	c->there = c->broken = false;
	c->depth = 0;
	buf_clear(&c->key);
}

static void
check_close(struct json_check *c)
{
	const struct json_checked *top = &c->stack[--c->depth];

	if (top->found != top->expected)
		c->broken = true;
}

static bool
check_is_below(const struct json_check *c, struct str steps)
{
	size_t len = c->stack[c->depth - 1].key_len;

	return steps.len > len && (!len || memcmp(steps.ptr, c->key.ptr, len) == 0) &&
	       (uint8_t)steps.ptr[len] != TUPLE_CODE_ESCAPE;
}

/* A leaf that stands for more than a scalar is the innermost one from now on. */
static bool
check_open(struct json_check *c, struct str steps, const struct timed_json_leaf *leaf)
{
	if (leaf->form == TIMED_JSON_SCALAR)
		return true;
	if (c->depth > JTREE_DEPTH)
		return false;
	c->stack[c->depth++] = (struct json_checked){ .key_len = steps.len,
						      .form = leaf->form,
						      .expected = leaf->count,
						      .next = leaf->next };
	buf_clear(&c->key);
	buf_append_str(&c->key, steps);
	return c->key.failed == STATUS_OK;
}

/* The last step of a leaf's key. What is in `scratch` is lost. */
static bool
check_step(struct json_checked *top, const struct tuple_elem *step,
	   const struct timed_json_leaf *leaf, struct buf *scratch)
{
	buf_clear(scratch);
	if (top->form == TIMED_JSON_OBJECT) {
		if (step->kind != TUPLE_STRING || leaf->ordinal >= (uint64_t)top->next)
			return false;
		tuple_unescape(step, scratch);
		return scratch->failed == STATUS_OK &&
		       utf8_valid_prefix(buf_str(scratch)) == scratch->len;
	}
	return step->kind == TUPLE_INT && !leaf->ordinal && step->magnitude <= INT64_MAX &&
	       (step->negative ? -(int64_t)step->magnitude : (int64_t)step->magnitude) ==
		       top->next + (int64_t)top->found;
}

/* False: this cannot be in a document. */
static bool
check_pair(struct json_check *c, struct str steps, struct str value)
{
	struct err ignored = { 0 };
	struct timed_json_leaf leaf;
	struct json_checked *top;
	struct tuple_elem step;
	struct tuple_reader r;
	uint64_t n;
	bool fine;

	buf_clear(&c->scratch);
	while (c->depth && !check_is_below(c, steps))
		check_close(c);
	top = c->depth ? &c->stack[c->depth - 1] : NULL;
	r = tuple_reader(str_skip(steps, top ? top->key_len : 0));
	if (top && top->form == TIMED_JSON_LONG) {
		fine = tuple_next(&r, &step) == STATUS_OK && json_is_pieces(&step) &&
		       tuple_next_u64(&r, &n) == STATUS_OK && !r.rest.len &&
		       n * TIMED_JSON_PIECE_BYTES == top->found &&
		       value.len <= TIMED_JSON_PIECE_BYTES;
		top->found += value.len;
		return fine;
	}
	if (timed_json_leaf_parse(value, &c->scratch, &leaf, &ignored) != STATUS_OK)
		return false;
	if (!top) {
		fine = !c->there && !steps.len && !leaf.ordinal;
		c->there = true;
		return fine && check_open(c, steps, &leaf);
	}
	if (tuple_next(&r, &step) != STATUS_OK || r.rest.len)
		return false;
	fine = check_step(top, &step, &leaf, &c->scratch);
	top->found++;
	return fine && check_open(c, steps, &leaf);
}

enum status
json_check_take(struct json_check *c, struct str steps, struct str value)
{
	if (check_pair(c, steps, value))
		return STATUS_OK;
	/* Both buffers are as large as a key and a value can be. */
	TRY(buf_status(&c->key));
	TRY(buf_status(&c->scratch));
	c->broken = true;
	return STATUS_OK;
}

bool
json_check_end(struct json_check *c)
{
	while (c->depth)
		check_close(c);
	return !c->broken;
}

void
json_check_release(struct json_check *c)
{
	buf_release(&c->key);
	buf_release(&c->scratch);
}

enum status
json_check_text(struct str text, struct arena *arena, bool *ret)
{
	AUTO(buf_release) struct buf again = BUF_INIT_OF(TIMED_LENGTH_BYTES, arena_part(arena));
	struct err ignored = { 0 };
	struct jtree_node *root;
	enum status status = jtree_read(text, arena, &root, &ignored);

	*ret = false;
	if (status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8 ||
	    status == STATUS_JSON_DEPTH)
		return STATUS_OK;
	TRY(status);
	TRY(jtree_write(root, &jtree_dense, 0, &again));
	TRY(buf_status(&again));
	*ret = str_eq(text, buf_str(&again));
	return STATUS_OK;
}
