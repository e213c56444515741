#include "index/view/reduce_memo.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
	FIRST_SLOTS = 256,
};

struct answer {
	uint64_t print[2]; /* hash of the question */
	struct str text;   /* ptr NULL: the slot is free */
};

/* A table with open addressing, at most half full. */
struct reduce_memo {
	struct arena *arena; /* the texts */
	struct answer *slots;
	size_t slot_count;
	size_t count;
};

enum status
reduce_memo_new(size_t limit_bytes, struct reduce_memo **ret)
{
	struct reduce_memo *memo = mem_zalloc(sizeof(*memo));

	if (!memo)
		return STATUS_NOMEM;
	memo->arena = arena_new(limit_bytes);
	if (!memo->arena) {
		mem_free(memo);
		return STATUS_NOMEM;
	}
	*ret = memo;
	return STATUS_OK;
}

void
reduce_memo_free(struct reduce_memo *memo)
{
	if (!memo)
		return;
	arena_free(memo->arena);
	mem_free(memo->slots);
	mem_free(memo);
}

void
reduce_memo_clear(struct reduce_memo *memo)
{
	if (!memo || memo->count == 0)
		return;
	arena_clear(memo->arena);
	mem_free(memo->slots);
	memo->slots = NULL;
	memo->slot_count = memo->count = 0;
}

/* Finds the slot of the question: that of its answer, or the free one where the answer belongs. */
static struct answer *
memo_slot(struct answer *slots, size_t slot_count, const uint64_t print[2])
{
	size_t at = (size_t)print[0] & (slot_count - 1);

	while (slots[at].text.ptr &&
	       (slots[at].print[0] != print[0] || slots[at].print[1] != print[1]))
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

static void
question_print(const struct reduce_question *q, uint64_t ret[2])
{
	for (uint64_t i = 0; i < 2; i++) {
		ret[i] = hash_keyed(2 * i + q->rereduce, q->name);
		ret[i] = hash_keyed(ret[i], q->keys);
		ret[i] = hash_keyed(ret[i], q->values);
	}
}

struct str
reduce_memo_find(const struct reduce_memo *memo, const struct reduce_question *q)
{
	uint64_t print[2];

	if (memo->count == 0)
		return (struct str){ 0 };
	question_print(q, print);
	return memo_slot(memo->slots, memo->slot_count, print)->text;
}

static bool
memo_grow(struct reduce_memo *memo)
{
	size_t slot_count = memo->slot_count ? 2 * memo->slot_count : FIRST_SLOTS;
	struct answer *slots;

	if (2 * (memo->count + 1) <= memo->slot_count)
		return true;
	slots = mem_zalloc(slot_count * sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < memo->slot_count; i++)
		if (memo->slots[i].text.ptr)
			*memo_slot(slots, slot_count, memo->slots[i].print) = memo->slots[i];
	mem_free(memo->slots);
	memo->slots = slots;
	memo->slot_count = slot_count;
	return true;
}

enum status
reduce_memo_keep(struct reduce_memo *memo, const struct reduce_question *q, struct str answer)
{
	struct answer *slot;
	uint64_t print[2];
	struct str text;

	if (!memo_grow(memo))
		return STATUS_NOMEM;
	question_print(q, print);
	slot = memo_slot(memo->slots, memo->slot_count, print);
	if (slot->text.ptr)
		return STATUS_OK;
	text = arena_dup(memo->arena, answer);
	/* The error would be stored with the sums, and outlive the shortage. */
	if (!text.ptr && arena_is_starved(memo->arena))
		return STATUS_NOMEM;
	if (!text.ptr)
		text = STR(REDUCE_OVERFLOW);
	*slot = (struct answer){ .print = { print[0], print[1] }, .text = text };
	memo->count++;
	return STATUS_OK;
}

/* ---- Questions ---- */

enum {
	/* The last question that is taken may have as much as an accumulator holds of rows. */
	ASKED_ARENA_BYTES = 4 * REDUCE_ASKED_BYTES,
};

enum status
reduce_asked_init(struct reduce_asked *asked)
{
	*asked = (struct reduce_asked){ .arena = arena_new(ASKED_ARENA_BYTES) };
	return asked->arena ? STATUS_OK : STATUS_NOMEM;
}

void
reduce_asked_release(struct reduce_asked *asked)
{
	arena_free(asked->arena);
	*asked = (struct reduce_asked){ 0 };
}

void
reduce_asked_clear(struct reduce_asked *asked)
{
	if (asked->count)
		arena_clear(asked->arena);
	asked->questions = NULL;
	asked->count = asked->cap = asked->bytes = 0;
}

enum status
reduce_asked_add(struct reduce_asked *asked, const struct reduce_question *q)
{
	struct reduce_question *kept;

	if (asked->bytes > REDUCE_ASKED_BYTES || asked->count == REDUCE_ASKED_MOST)
		return STATUS_OK;
	TRY(arena_room(asked->arena, &asked->questions, asked->count, &asked->cap,
		       sizeof(*asked->questions)));
	kept = &asked->questions[asked->count];
	*kept = *q;
	kept->keys = arena_dup(asked->arena, q->keys);
	kept->values = arena_dup(asked->arena, q->values);
	if (!kept->keys.ptr || !kept->values.ptr)
		return STATUS_LIMIT;
	asked->bytes += q->keys.len + q->values.len;
	asked->count++;
	return STATUS_OK;
}
