/*
 * The memory of a script. It is counted, and taken of memory_bytes like everything that a command
 * holds. A block lies in the region of the script's image if that has room for it. All other blocks
 * are in a list, and are freed by that when the script has ended.
 */
#include <assert.h>
#include <string.h>

#include "base/budget.h"
#include "base/mem.h"
#include "lua/image.h"
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
 * tables. All blocks are known, and what is Lua's does not matter if the script is not entered
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
 * What the script holds: its listed blocks, and the region as far as it was ever used, whatever of
 * that is free.
 */
static size_t
script_held(const struct script *s)
{
	return s->listed_bytes + (s->image ? s->image->region.most : 0);
}

/*
 * Takes room for what the script holds and `more` bytes. It is taken a little ahead, and what
 * a collection of garbage leaves free goes back in the same measure, so that the budget's lock is
 * not wanted for each table.
 */
static bool
script_take_room(struct script *s, size_t more)
{
	struct budget_part *part = s->part;
	size_t wanted = script_held(s) + more;
	size_t lacks = wanted > s->room_bytes ? wanted - s->room_bytes : 0;

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
	size_t spare = s->room_bytes - script_held(s);

	assert(s->room_bytes >= script_held(s)); /* nothing is allocated without room */
	if (spare <= 2 * SCRIPT_ROOM_BYTES)
		return;
	budget_unuse(s->part, spare - SCRIPT_ROOM_BYTES);
	s->room_bytes -= spare - SCRIPT_ROOM_BYTES;
}

static bool
block_is_in_region(const struct script *s, const struct script_block *b)
{
	return s->image && region_has(&s->image->region, b);
}

/* Frees a block, of so many bytes with its head. */
static void
block_drop(struct script *s, struct script_block *b, size_t bytes)
{
	if (block_is_in_region(s, b)) {
		region_free(&s->image->region, b, bytes);
	} else {
		block_unlink(s, b);
		mem_free(b);
		s->listed_bytes -= bytes;
	}
}

/* A block that is not in the list as yet if it is elsewhere than in the region; NULL: no memory. */
static struct script_block *
block_make(struct script *s, size_t bytes)
{
	struct script_block *b = s->image ? region_alloc(&s->image->region, bytes) : NULL;

	if (b)
		return b;
	b = mem_alloc(bytes);
	if (!b)
		return NULL;
	block_link(s, b);
	s->listed_bytes += bytes;
	return b;
}

/* Another size for a block of the list. */
static struct script_block *
block_resize(struct script *s, struct script_block *b, size_t had, size_t wants)
{
	struct script_block *resized;

	block_unlink(s, b);
	resized = mem_realloc(b, wants);
	block_link(s, resized ? resized : b);
	if (resized)
		s->listed_bytes += wants - had;
	return resized;
}

/* The same for any block. NULL: no memory, and the block is as it was. */
static struct script_block *
block_renew(struct script *s, struct script_block *b, size_t had, size_t wants)
{
	struct script_block *renewed;

	if (!b)
		return block_make(s, wants);
	if (!block_is_in_region(s, b))
		return block_resize(s, b, had, wants);
	if (wants <= had || region_fits(had, wants)) {
		region_shrink(&s->image->region, b, had, wants);
		return b;
	}
	renewed = block_make(s, wants);
	if (!renewed)
		return NULL;
	/* The head is of the list that the new one is in. */
	memcpy(renewed + 1, b + 1, had - sizeof(*b));
	region_free(&s->image->region, b, had);
	return renewed;
}

/* Lua's allocator. It never fails to make something smaller. */
static void *
script_alloc(void *ud, void *ptr, size_t old_bytes, size_t new_bytes)
{
	struct script *s = ud;
	struct script_block *b = ptr ? (struct script_block *)ptr - 1 : NULL;
	struct script_block *renewed;
	size_t had = b ? sizeof(*b) + old_bytes : 0;
	size_t wants = sizeof(*b) + new_bytes;
	size_t more = !b || block_is_in_region(s, b) ? wants + REGION_UNIT_BYTES : wants - had;

	if (!new_bytes) {
		if (b) {
			block_drop(s, b, had);
			s->bytes -= had;
			script_give_room(s);
		}
		return NULL;
	}
	if (wants > had && s->bytes - had + wants > SCRIPT_MEMORY_BYTES)
		return NULL;
	/* The block stays in the list while the script leaves for good: all are freed. */
	if (wants > had && !script_take_room(s, more))
		script_end_for_memory(s);
	renewed = block_renew(s, b, had, wants);
	if (!renewed)
		return wants <= had ? ptr : NULL;
	s->bytes += wants - had;
	if (wants > had)
		script_count_bytes(s, wants);
	else
		script_give_room(s);
	return renewed + 1;
}

/* The state as `prepare` has left it for another script. */
static lua_State *
memory_restore(struct script *s)
{
	struct script_image *i = s->image;

	if (!script_take_room(s, 0))
		script_end_for_memory(s);
	image_restore(i);
	s->bytes = i->bytes;
	lua_setallocf(i->lua, script_alloc, s);
	return i->lua;
}

void
script_memory_begin(struct script *s)
{
	if (!s->images)
		return;
	s->image = script_images_take(s->images, s->key);
	/* Without memory for one, its state is in blocks alone. */
	if (!s->image)
		s->image = image_new(s->key);
}

lua_State *
script_memory_open(struct script *s, bool *ret_prepared)
{
	*ret_prepared = s->image && s->image->copy;
	return *ret_prepared ? memory_restore(s) : lua_newstate(script_alloc, s);
}

void
script_memory_note(struct script *s)
{
	if (!s->image || s->blocks)
		return;
	(void)lua_gc(s->lua, LUA_GCCOLLECT, 0);
	/* Without memory for it, the next script makes its state anew. */
	(void)image_note(s->image, s->lua, s->bytes);
}

void
script_memory_free(struct script *s)
{
	while (s->blocks) {
		struct script_block *b = s->blocks;

		s->blocks = b->next;
		mem_free(b);
	}
	if (s->image)
		script_images_give(s->images, s->image);
	s->image = NULL;
	budget_unuse(s->part, s->room_bytes + s->stack_bytes);
	s->bytes = s->listed_bytes = s->room_bytes = s->stack_bytes = 0;
}
