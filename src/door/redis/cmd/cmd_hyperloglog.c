/* HyperLogLogs: PFADD, PFCOUNT, PFMERGE. What they are made of is wire/hyperloglog.h's. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/hyperloglog.h"
#include "loop/step.h"

static enum status
hll_unsound(struct call *c)
{
	return call_error(c, STR("INVALIDOBJ Corrupted HLL object detected"));
}

/* How long a sparse one may be. */
static size_t
hll_sparse_most(const struct call *c)
{
	uint64_t most = atomic_load_explicit(&c->redis->sparse_bytes, memory_order_relaxed);

	return most < HLL_BYTES ? (size_t)most : HLL_BYTES;
}

/* Makes room for one of `len` bytes, or what becomes of it. */
static enum status
hll_room(struct call *c, size_t len, struct hll *ret)
{
	size_t most = hll_sparse_most(c);

	most = most > HLL_DENSE_BYTES ? most : HLL_DENSE_BYTES;
	ret->room = (len > most ? len : most) + HLL_SPARE_BYTES;
	ret->bytes = arena_alloc(c->arena, ret->room);
	ret->scratch = arena_alloc(c->arena, HLL_REGISTERS);
	return ret->bytes && ret->scratch ? STATUS_OK : STATUS_LIMIT;
}

/* Reads one; one that is not there is empty. */
static enum status
hll_load(struct call *c, struct timed_item *item, struct hll *ret)
{
	struct str value;

	if (item->type == TIMED_LEAF) {
		TRY(hll_room(c, 0, ret));
		hll_init(ret);
		return STATUS_OK;
	}
	if (item->type != TIMED_VALUE)
		return call_wrong_type(c);
	if (item->length > HLL_BYTES)
		return hll_unsound(c);
	TRY(data_value(item, &value));
	if (!hll_is_sound(value))
		return call_error(c, STR("WRONGTYPE Key is not a valid HyperLogLog string value."));
	TRY(hll_room(c, value.len, ret));
	memcpy(ret->bytes, value.ptr, value.len);
	memset(ret->bytes + value.len, 0, HLL_SPARE_BYTES);
	ret->len = value.len;
	return step_count_bytes(HLL_REGISTERS);
}

static enum status
hll_store(struct call *c, struct timed_item *item, struct hll *h)
{
	hll_forget_count(h);
	TRY(timed_value_replace(item, str_of(h->bytes, h->len)));
	return txn_changed(c, c->argv[1], EVENT_STRING, "pfadd");
}

enum status
cmd_pfadd(struct call *c)
{
	size_t most = hll_sparse_most(c);
	struct timed_item *item;
	struct hll h;
	bool changed;

	TRY(txn_item(c, c->argv[1], &item));
	changed = item->type == TIMED_LEAF;
	TRY(hll_load(c, item, &h));
	for (size_t i = 2; i < c->argc; i++) {
		enum hll_change change = hll_add(&h, c->argv[i], most);

		/* A sparse one is gone through from its beginning. */
		TRY(step_count_bytes(c->argv[i].len + (hll_is_dense(&h) ? 0 : h.len)));
		if (change == HLL_UNSOUND)
			return hll_unsound(c);
		changed |= change == HLL_CHANGED;
	}
	reply_int(c->reply, changed);
	return changed ? hll_store(c, item, &h) : STATUS_OK;
}

/*
 * Merges those of arguments from 1 on that are there. `*ret_dense`: one of them is dense. The
 * number that the last one has of itself is in `last`.
 */
static enum status
hll_merge_all(struct call *c, uint8_t *registers, struct hll *last, bool *ret_dense)
{
	struct timed_item *item;

	*ret_dense = false;
	for (size_t i = 1; i < c->argc; i++) {
		TRY(txn_item(c, c->argv[i], &item));
		TRY(txn_looked_up(c, item));
		TRY(hll_load(c, item, last));
		*ret_dense |= hll_is_dense(last);
		if (!hll_merge(last, registers))
			return hll_unsound(c);
	}
	return STATUS_OK;
}

enum status
cmd_pfcount(struct call *c)
{
	uint8_t *registers = arena_zalloc(c->arena, HLL_REGISTERS);
	uint64_t count;
	struct hll h;
	bool dense;

	if (!registers)
		return STATUS_LIMIT;
	TRY(hll_merge_all(c, registers, &h, &dense));
	/* One alone may have been written by Redis, with the number that it knew. */
	if (c->argc > 2 || !hll_known_count(&h, &count))
		count = hll_count(registers);
	reply_int(c->reply, (int64_t)count);
	return STATUS_OK;
}

enum status
cmd_pfmerge(struct call *c)
{
	uint8_t *registers = arena_zalloc(c->arena, HLL_REGISTERS);
	size_t most = hll_sparse_most(c);
	struct timed_item *item;
	struct hll h;
	bool dense;

	if (!registers)
		return STATUS_LIMIT;
	TRY(hll_merge_all(c, registers, &h, &dense));
	TRY(txn_item(c, c->argv[1], &item));
	TRY(hll_load(c, item, &h));
	if (dense && !hll_make_dense(&h))
		return hll_unsound(c);
	for (unsigned n = 0; n < HLL_REGISTERS; n++) {
		if (!registers[n])
			continue;
		if (hll_raise(&h, n, registers[n], most) == HLL_UNSOUND)
			return hll_unsound(c);
		TRY(step_count_bytes(hll_is_dense(&h) ? 1 : h.len));
	}
	reply_ok(c->reply);
	return hll_store(c, item, &h);
}
