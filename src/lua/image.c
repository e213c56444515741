#include "lua/image.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/fiber.h"

/* ---- A region ---- */

void *
region_alloc(struct region *r, size_t bytes)
{
	size_t units = region_units(bytes);
	struct region_block *block;

	if (units <= REGION_CLASSES && r->free[units]) {
		block = r->free[units];
		r->free[units] = block->next;
		return block;
	}
	if (units > (SCRIPT_REGION_BYTES - r->used) / REGION_UNIT_BYTES)
		return NULL;
	block = (struct region_block *)(void *)(r->base + r->used);
	r->used += units * REGION_UNIT_BYTES;
	if (r->used > r->most)
		r->most = r->used;
	return block;
}

void
region_free(struct region *r, void *ptr, size_t bytes)
{
	size_t units = region_units(bytes);
	struct region_block *block = ptr;

	if ((char *)ptr + units * REGION_UNIT_BYTES == r->base + r->used) {
		r->used -= units * REGION_UNIT_BYTES;
	} else if (units <= REGION_CLASSES) {
		block->next = r->free[units];
		r->free[units] = block;
	}
}

void
region_shrink(struct region *r, void *block, size_t bytes, size_t left)
{
	size_t had = region_units(bytes) * REGION_UNIT_BYTES;
	size_t has = region_units(left) * REGION_UNIT_BYTES;

	if (has < had)
		region_free(r, (char *)block + has, had - has);
}

/* ---- Images ---- */

struct script_image *
image_new(struct str key)
{
	struct script_image *i = mem_zalloc(sizeof(*i));

	if (!i)
		return NULL;
	i->region.base = mem_alloc(SCRIPT_REGION_BYTES);
	if (!i->region.base) {
		mem_free(i);
		return NULL;
	}
	memcpy(i->key, key.ptr, sizeof(i->key));
	return i;
}

void
image_free(struct script_image *i)
{
	if (!i)
		return;
	fiber_free(i->fiber);
	mem_free(i->region.base);
	mem_free(i->copy);
	mem_free(i);
}

bool
image_note(struct script_image *i, struct lua_State *lua, size_t bytes)
{
	i->copy = mem_alloc(i->region.used);
	if (!i->copy)
		return false;
	memcpy(i->copy, i->region.base, i->region.used);
	i->noted = i->region;
	i->lua = lua;
	i->bytes = bytes;
	return true;
}

void
image_restore(struct script_image *i)
{
	size_t most = i->region.most; /* what was touched stays touched */

	i->region = i->noted;
	i->region.most = most;
	memcpy(i->region.base, i->copy, i->region.used);
}

/* Gives the system back what scripts have touched of the region far behind the state. */
static void
image_trim(struct script_image *i)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)i->region.base + i->noted.used + SCRIPT_IMAGE_SPARE_BYTES;
	uintptr_t to = (uintptr_t)i->region.base + i->region.most;

	from = (from + page - 1) / page * page;
	to = to / page * page;
	if (from >= to)
		return;
	(void)madvise((void *)from, to - from, MADV_DONTNEED);
	i->region.most = i->noted.used;
}

/* ---- The list ---- */

struct script_images {
	pthread_mutex_t lock;
	struct script_image *first;
};

struct script_images *
script_images_new(void)
{
	struct script_images *images = mem_zalloc(sizeof(*images));

	if (images)
		pthread_mutex_init(&images->lock, NULL);
	return images;
}

void
script_images_free(struct script_images *images)
{
	if (!images)
		return;
	script_images_clear(images);
	pthread_mutex_destroy(&images->lock);
	mem_free(images);
}

struct script_image *
script_images_take(struct script_images *images, struct str key)
{
	struct script_image **link, *found;

	pthread_mutex_lock(&images->lock);
	for (link = &images->first; *link; link = &(*link)->next)
		if (memcmp((*link)->key, key.ptr, SCRIPT_IMAGE_KEY_BYTES) == 0)
			break;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&images->lock);
	return found;
}

static size_t
image_bytes(const struct script_image *i)
{
	return 2 * i->noted.used + SCRIPT_IMAGE_SPARE_BYTES + SCRIPT_IMAGE_STACK_BYTES;
}

/* Takes out those behind the first `most` bytes. */
static struct script_image *
images_cut(struct script_images *images, size_t most)
{
	struct script_image **link = &images->first, *rest;
	size_t bytes = 0;

	for (; *link; link = &(*link)->next) {
		bytes += image_bytes(*link);
		if (bytes > most)
			break;
	}
	rest = *link;
	*link = NULL;
	return rest;
}

static void
images_drop(struct script_image *first)
{
	while (first) {
		struct script_image *next = first->next;

		image_free(first);
		first = next;
	}
}

void
script_images_give(struct script_images *images, struct script_image *image)
{
	struct script_image *dropped;

	if (!image->copy) {
		image_free(image);
		return;
	}
	image_trim(image);
	pthread_mutex_lock(&images->lock);
	image->next = images->first;
	images->first = image;
	dropped = images_cut(images, SCRIPT_IMAGES_BYTES);
	pthread_mutex_unlock(&images->lock);
	images_drop(dropped);
}

void
script_images_clear(struct script_images *images)
{
	struct script_image *dropped;

	pthread_mutex_lock(&images->lock);
	dropped = images_cut(images, 0);
	pthread_mutex_unlock(&images->lock);
	images_drop(dropped);
}

size_t
script_images_bytes(struct script_images *images)
{
	size_t bytes = 0;

	pthread_mutex_lock(&images->lock);
	for (const struct script_image *i = images->first; i; i = i->next)
		bytes += image_bytes(i);
	pthread_mutex_unlock(&images->lock);
	return bytes;
}
