/*
 * The memory of a script: counted, and in a list, so that all of it is freed although the script
 * may have been left in the middle of something.
 */
#include "base/mem.h"
#include "door/redis/script/script.h"

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

/* Lua's allocator. It never fails to make something smaller. */
static void *
script_alloc(void *ud, void *ptr, size_t old_bytes, size_t new_bytes)
{
	struct script *s = ud;
	struct script_block *b = ptr ? (struct script_block *)ptr - 1 : NULL;
	struct script_block *grown;

	if (!new_bytes) {
		if (b) {
			block_unlink(s, b);
			s->bytes -= old_bytes;
			mem_free(b);
		}
		return NULL;
	}
	if (!b)
		old_bytes = 0;
	if (new_bytes > old_bytes && s->bytes - old_bytes + new_bytes > SCRIPT_MEMORY_BYTES)
		return NULL;
	if (b)
		block_unlink(s, b);
	grown = mem_realloc(b, sizeof(*b) + new_bytes);
	if (!grown) {
		if (b)
			block_link(s, b);
		return new_bytes <= old_bytes ? ptr : NULL;
	}
	s->bytes += new_bytes - old_bytes;
	block_link(s, grown);
	if (new_bytes > old_bytes)
		script_count_bytes(s, new_bytes);
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
}
