/*
 * What belongs to one thing lies side by side, below keys that begin alike: a document's rows with
 * two numbers and a name, and those of one of its versions with that version, too. RocksDB is told
 * of these beginnings, so that its bloom filters know them as they know whole keys, and looking for
 * a document's last row need not ask the tables that have none. Which beginnings these are is in
 * the shape (kv/shape.h) that the store was opened with.
 *
 * == Why a reader misses nothing ==
 *
 * RocksDB relies on two things, which hold for keys of any bytes: keys with the same beginning are
 * neighbours, and the beginning alone sorts before all of them. Each element of a tuple tells by
 * its own bytes, and by at most one behind it, where it ends. That one is FF behind the NUL that
 * would end a string or a nested tuple: then the element goes on. So the keys of an entity are
 * those that start with its beginning and do not go on with FF, one stretch that begins there.
 *
 * RocksDB also relies on all tables having been written with the same beginnings, and compares
 * nothing but the extractor's name, which each table keeps. Therefore the name is the shape,
 * spelled out in full. A table that was written with another shape, by an older or a newer frond,
 * is asked without its filters of entities, which costs time and hides nothing; and it gets new
 * ones when it is next written. The one name that is no description stands for the shape that
 * stores had when there was one shape only.
 */
#include <assert.h>
#include <stdio.h>

#include "kv/embedded/embedded_int.h"

#define NAME_PREFIX    "frond.entities"
#define SHAPE_OF_ALIAS " *:t 4:tbit" /* what the name without a description has always meant */

/* ---- The name ---- */

static char
element_letter(enum tuple_skip kind)
{
	switch (kind) {
	case TUPLE_SKIP_INT:
		return 'i';
	case TUPLE_SKIP_TEXT:
		return 't';
	case TUPLE_SKIP_BOOL:
		return 'b';
	case TUPLE_SKIP_ANY:
		return 'a';
	}
	return '?';
}

static void
describe_entity(const struct kv_entity *entity, struct buf *out)
{
	for (size_t i = 0; i < entity->element_count; i++)
		buf_append_byte(out, element_letter(entity->elements[i]));
}

/* Stored in tables: what is written for a shape must never change. */
static enum status
make_name(const struct kv_shape *shape, char ret[EMB_ENTITIES_NAME_BYTES])
{
	struct buf b AUTO(buf_release) = BUF_INIT(EMB_ENTITIES_NAME_BYTES - sizeof(NAME_PREFIX));

	buf_printf(&b, " *:");
	describe_entity(&shape->others, &b);
	for (size_t i = 0; i < shape->space_count; i++) {
		buf_printf(&b, " %llu:", (unsigned long long)shape->spaces[i].space);
		describe_entity(&shape->spaces[i].entity, &b);
	}
	TRY(buf_status(&b));
	if (str_eq(buf_str(&b), STR(SHAPE_OF_ALIAS)))
		buf_clear(&b);
	(void)snprintf(ret, EMB_ENTITIES_NAME_BYTES, NAME_PREFIX "%.*s", STR_ARG(buf_str(&b)));
	return STATUS_OK;
}

/* ---- Shapes ---- */

static bool
makes_sense(const struct kv_shape *shape)
{
	if (shape->space_count > KV_SHAPE_SPACES ||
	    shape->others.element_count > KV_ENTITY_ELEMENTS)
		return false;
	for (size_t i = 0; i < shape->space_count; i++) {
		const struct kv_shape_space *s = &shape->spaces[i];

		if (s->space > KV_SHAPE_SPACE_MOST || s->entity.element_count > KV_ENTITY_ELEMENTS)
			return false;
		if (i > 0 && s->space <= shape->spaces[i - 1].space)
			return false;
	}
	return true;
}

enum status
emb_entities_init(struct emb_entities *entities, const struct kv_shape *shape, struct err *err)
{
	static const struct kv_shape none;
	enum status status;

	*entities = (struct emb_entities){ .shape = shape ? *shape : none };
	if (!makes_sense(&entities->shape))
		return err_set(err, STATUS_INVALID, "the shape of the store makes no sense");
	for (size_t i = 0; i < entities->shape.space_count; i++)
		entities->places[entities->shape.spaces[i].space] = (uint8_t)(i + 1);
	status = make_name(&entities->shape, entities->name);
	return status == STATUS_OK ? status : err_set(err, status, "the shape has no name");
}

/* What makes an entity in the subspace whose number lies between `from` and `to`. */
static const struct kv_entity *
entity_of_space(const struct emb_entities *entities, struct str key, size_t from, size_t to)
{
	enum {
		ONE_BYTE = 0x15, /* the code of a positive integer of one byte */
		ZERO = 0x14,
	};
	uint8_t code = (uint8_t)key.ptr[from], place = 0;

	if (code == ONE_BYTE)
		place = entities->places[(uint8_t)key.ptr[from + 1]];
	else if (code == ZERO)
		place = entities->places[0];
	assert(to > from && place <= entities->shape.space_count);
	return place ? &entities->shape.spaces[place - 1].entity : &entities->shape.others;
}

size_t
emb_entity_len(const struct emb_entities *entities, struct str key)
{
	size_t space = tuple_skip_int(key, 0);
	size_t len = space ? tuple_skip_int(key, space) : 0;
	const struct kv_entity *entity;

	if (len == 0)
		return 0;
	entity = entity_of_space(entities, key, space, len);
	if (entity->element_count == 0)
		return 0;
	/* RocksDB asks several times for each key that is written: what keys have is inline. */
	for (size_t i = 0; i < entity->element_count && len; i++) {
		enum tuple_skip kind = entity->elements[i];

		if (kind == TUPLE_SKIP_TEXT)
			len = tuple_skip_text(key, len);
		else if (kind == TUPLE_SKIP_INT)
			len = tuple_skip_int(key, len);
		else if (kind == TUPLE_SKIP_BOOL)
			len = tuple_skip_bool(key, len);
		else
			len = tuple_skip(key, len, kind);
	}
	return len;
}

bool
emb_entity_has(struct str entity, struct str key)
{
	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	return str_starts_with(key, entity) &&
	       (key.len == entity.len || (uint8_t)key.ptr[entity.len] < UINT8_MAX);
}

size_t
emb_range_entity_len(const struct emb_entities *entities, struct str begin, struct str end)
{
	size_t len = emb_entity_len(entities, begin);

	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	if (len && end.len > len && memcmp(begin.ptr, end.ptr, len) == 0 &&
	    ((uint8_t)end.ptr[len] < UINT8_MAX || end.len == len + 1))
		return len;
	return 0;
}

/* ---- For RocksDB ---- */

static void
extractor_destroy(void *state)
{
	(void)state; /* the store's */
}

static const char *
extractor_name(void *state)
{
	return ((const struct emb_entities *)state)->name;
}

static unsigned char
extractor_in_domain(void *state, const char *key, size_t len)
{
	return emb_entity_len(state, str_of(key, len)) > 0;
}

static char *
extractor_transform(void *state, const char *key, size_t len, size_t *ret_len)
{
	*ret_len = emb_entity_len(state, str_of(key, len));
	return (char *)(uintptr_t)key; /* it is not written to */
}

static unsigned char
extractor_in_range(void *state, const char *key, size_t len)
{
	return len && emb_entity_len(state, str_of(key, len)) == len;
}

rocksdb_slicetransform_t *
emb_entities_extractor(const struct emb_entities *entities)
{
	return rocksdb_slicetransform_create((void *)(uintptr_t)entities, extractor_destroy,
					     extractor_transform, extractor_in_domain,
					     extractor_in_range, extractor_name);
}
