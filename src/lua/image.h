/*
 * Lua states as they were before they ran anything, so that a script need not open libraries and
 * compile its text each time.
 *
 * An image is a Lua state together with a copy of it. The state lies in one stretch of memory, the
 * region. A script may change the region, and may allocate blocks outside of it. When the script
 * has ended, these blocks are freed; before the next one the copy is written over the region. Then
 * the state is as it was, whatever a script has done and however it was ended. So no script finds
 * anything that an earlier one has left.
 *
 * The images of a process are in a list, the one that was used last first. Whoever runs a script
 * takes an image out, and gives it back. Threading: any thread may call the functions on the list;
 * an image belongs to the thread that has taken it.
 */
#ifndef FROND_LUA_IMAGE_H
#define FROND_LUA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	SCRIPT_IMAGES_BYTES = 8 * 1024 * 1024, /* of the images that are kept */
	SCRIPT_REGION_BYTES = 512 * 1024,      /* used as they are touched */
	SCRIPT_IMAGE_SPARE_BYTES = 64 * 1024,  /* of a region behind the state, that stay */
	SCRIPT_IMAGE_STACK_BYTES = 32 * 1024,  /* of a stack that is kept with it */
	SCRIPT_IMAGE_KEY_BYTES = 41,
	REGION_UNIT_BYTES = 16,
	REGION_CLASSES = 32, /* blocks of up to so many units are used again once they are free */
};

struct fiber;
struct lua_State;

struct region_block {
	struct region_block *next;
};

struct region {
	char *base;
	size_t used; /* bytes; no block lies behind them */
	size_t most; /* what `used` was at most since the region was made or trimmed */
	struct region_block *free[REGION_CLASSES + 1];
};

struct script_image {
	struct script_image *next;
	char key[SCRIPT_IMAGE_KEY_BYTES];
	struct region region;
	struct fiber *fiber; /* idle, with a stack for the next script; NULL: there is none */

	/* What was noted by image_note(): */
	char *copy; /* NULL: nothing was */
	struct region noted;
	struct lua_State *lua;
	size_t bytes; /* that the allocator had counted */
};

/* ---- A region ---- */

/* Aligned to REGION_UNIT_BYTES. NULL: there is no room in the region. */
void *region_alloc(struct region *r, size_t bytes);
void region_free(struct region *r, void *block, size_t bytes);
/* A block of `bytes` has `left` from now on, as many or fewer; or more, if region_fits(). */
void region_shrink(struct region *r, void *block, size_t bytes, size_t left);

static inline size_t
region_units(size_t bytes)
{
	return (bytes + REGION_UNIT_BYTES - 1) / REGION_UNIT_BYTES;
}

static inline bool
region_has(const struct region *r, const void *block)
{
	return r->base && (const char *)block >= r->base &&
	       (const char *)block < r->base + SCRIPT_REGION_BYTES;
}

/* True if a block of so many bytes has room for so many. */
static inline bool
region_fits(size_t bytes, size_t wanted)
{
	return region_units(bytes) == region_units(wanted);
}

/* ---- Images ---- */

/* With an empty region. The key has SCRIPT_IMAGE_KEY_BYTES. NULL: out of memory. */
struct script_image *image_new(struct str key);
void image_free(struct script_image *i); /* NULL is fine */
/* Notes what is in the region. False: out of memory. */
bool image_note(struct script_image *i, struct lua_State *lua, size_t bytes);
/* Makes the region what it was when it was noted. */
void image_restore(struct script_image *i);

struct script_images;

struct script_images *script_images_new(void); /* NULL: out of memory */
/* Nobody has an image of them. NULL is fine. */
void script_images_free(struct script_images *images);
/* Takes one with that key out; NULL: there is none. */
struct script_image *script_images_take(struct script_images *images, struct str key);
/*
 * Puts it in, if it was noted, and frees those that were used longest ago if all are more than
 * SCRIPT_IMAGES_BYTES.
 */
void script_images_give(struct script_images *images, struct script_image *image);
/* Frees those in the list. */
void script_images_clear(struct script_images *images);
/* What those in the list have: states, their copies, and what stays beside them. */
size_t script_images_bytes(struct script_images *images);

#endif
