/*
 * The memory of a script. It is counted, and taken of memory_bytes like everything that a command
 * holds. All blocks are in a list, by which they are freed when a script is not entered again.
 */
#include <assert.h>

#include "base/budget.h"
#include "base/mem.h"
#include "lua/script.h"

struct script_block {
	struct script_block *next;
	struct script_block *prev;
};

static void
block_link(struct script *s, struct script_block *b)
{
	b->prev = NULL;
	b->next = s->blocks;
	if (b->next)
		b->next->prev = b;
	s->blocks = b;
}

static void
block_unlink(struct script *s, struct script_block *b)
{
	if (b->prev)
		b->prev->next = b->next;
	else
		s->blocks = b->next;
	if (b->next)
		b->next->prev = b->prev;
}

/*
 * Whoever gets memory fills it: so this counts what Lua's functions do that make long texts and
 * tables. Everything is in the list, and what is Lua's does not matter if the script is not entered
 * again. What the script has now may be much more than what it had when the slice began.
 */
static void
script_count_bytes(struct script *s, size_t bytes)
{
	s->work += bytes / SCRIPT_STEP_BYTES;
	if (s->work >= SCRIPT_SLICE_INSTRUCTIONS) {
		s->work = 0;
		script_leave(s, SCRIPT_WANTS_PAUSE);
	}
	if (s->is_sliced && s->bytes > SCRIPT_SLICE_BYTES && s->bytes / 2 > s->slice_bytes)
		script_begin_slice(s);
}

/*
 * Takes room for all of the script's blocks and `more` bytes. It is taken a little ahead, and what
 * a collection of garbage leaves free goes back in the same measure, so that the budget's lock is
 * not wanted for each table.
 */
static bool
script_take_room(struct script *s, size_t more)
{
	struct budget_part *part = s->part;
	size_t lacks = s->bytes + more > s->room_bytes ? s->bytes + more - s->room_bytes : 0;

	if (!lacks)
		return true;
	if (budget_use(part, lacks + SCRIPT_ROOM_BYTES))
		lacks += SCRIPT_ROOM_BYTES;
	else if (!budget_use(part, lacks))
		return false;
	s->room_bytes += lacks;
	return true;
}

static void
script_give_room(struct script *s)
{
	size_t spare = s->room_bytes - s->bytes;

	assert(s->room_bytes >= s->bytes); /* nothing is allocated without room */
	if (spare <= 2 * SCRIPT_ROOM_BYTES)
		return;
	budget_unuse(s->part, spare - SCRIPT_ROOM_BYTES);
	s->room_bytes = s->bytes + SCRIPT_ROOM_BYTES;
}

static void
script_free_block(struct script *s, struct script_block *b, size_t bytes)
{
	block_unlink(s, b);
	mem_free(b);
	s->bytes -= bytes;
	script_give_room(s);
}

/* Lua's allocator. It never fails to make something smaller. */
static void *
script_alloc(void *ud, void *ptr, size_t old_bytes, size_t new_bytes)
{
	struct script *s = ud;
	struct script_block *b = ptr ? (struct script_block *)ptr - 1 : NULL;
	struct script_block *grown;
	size_t had = b ? sizeof(*b) + old_bytes : 0;
	size_t wants = sizeof(*b) + new_bytes;

	if (!new_bytes) {
		if (b)
			script_free_block(s, b, had);
		return NULL;
	}
	if (wants > had && s->bytes - had + wants > SCRIPT_MEMORY_BYTES)
		return NULL;
	/* The block stays in the list while the script leaves for good: all are freed. */
	if (wants > had && !script_take_room(s, wants - had))
		script_end_for_memory(s);
	if (b)
		block_unlink(s, b);
	grown = mem_realloc(b, wants);
	if (!grown) {
		if (b)
			block_link(s, b);
		return wants <= had ? ptr : NULL;
	}
	s->bytes += wants - had;
	block_link(s, grown);
	if (wants > had)
		script_count_bytes(s, wants);
	else
		script_give_room(s);
	return grown + 1;
}

lua_State *
script_memory_open(struct script *s)
{
	return lua_newstate(script_alloc, s);
}

void
script_memory_free(struct script *s)
{
	while (s->blocks) {
		struct script_block *b = s->blocks;

		s->blocks = b->next;
		mem_free(b);
	}
	budget_unuse(s->part, s->room_bytes + s->stack_bytes);
	s->bytes = s->room_bytes = s->stack_bytes = 0;
}
