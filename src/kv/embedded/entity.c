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
#include <stdatomic.h>
#include <stdio.h>

#include "kv/embedded/embedded_int.h"

#define NAME_PREFIX    "frond.entities"
#define SHAPE_OF_ALIAS " *:t 4:tbit" /* what the name without a description has always meant */

enum {
	LEAST_BYTES = 2, /* of a key of an entity: it begins with two integers */
	/* Of a beginning that a thread keeps: nearly all are longer than a word and shorter. */
	KEPT_BYTES = 64,
	SHORT_BYTES = 32, /* of a key that is read as fast as it is compared */
	WORD_BYTES = sizeof(uint64_t),
};

static _Atomic uint64_t shapes; /* that the process has had */

/*
 * RocksDB asks whether a key has a beginning, and right behind that which one it is; and the keys
 * of a batch come in order, those of an entity one after the other. So each thread keeps the last
 * beginning that it has found, with the shape it was found by.
 */
static _Thread_local struct {
	uint64_t id; /* of the shape; 0: there is no beginning yet */
	size_t len;
	char beginning[KEPT_BYTES];
} kept;

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
	entities->id = atomic_fetch_add_explicit(&shapes, 1, memory_order_relaxed) + 1;
	entities->kinds[0] = entities->shape.others;
	for (size_t i = 0; i < entities->shape.space_count; i++) {
		entities->places[entities->shape.spaces[i].space] = (uint8_t)(i + 1);
		entities->kinds[i + 1] = entities->shape.spaces[i].entity;
	}
	status = make_name(&entities->shape, entities->name);
	return status == STATUS_OK ? status : err_set(err, status, "the shape has no name");
}

/* ---- Keys ---- */

/*
 * RocksDB asks several times for each key that is written. So the elements that keys have are
 * passed over inline, by pointers: a pointer to what is behind the element, or NULL if no element
 * of that kind begins at `at`.
 */

static inline const char *
entity_skip_int(const char *at, const char *end)
{
	size_t len;

	if (end - at >= 2 && *at == TUPLE_CODE_INT_ZERO + 1) /* as most are */
		return at + 2;
	len = tuple_skip_int(str_of(at, (size_t)(end - at)), 0);
	return len ? at + len : NULL;
}

static inline const char *
entity_skip_text(const char *at, const char *end)
{
	const char *behind;

	if (at == end || (*at != TUPLE_CODE_BYTES && *at != TUPLE_CODE_STRING))
		return NULL;
	behind = memchr(at, 0, (size_t)(end - at));
	if (!behind)
		return NULL;
	behind++;
	if (behind < end && (uint8_t)*behind == TUPLE_CODE_ESCAPE) {
		struct str rest = str_of(at, (size_t)(end - at));
		size_t len = tuple_skip_escaped(rest, (size_t)(behind - at) - 1);

		return len ? at + len : NULL;
	}
	return behind;
}

static inline const char *
entity_skip(const char *at, const char *end, enum tuple_skip kind)
{
	size_t len;

	if (kind == TUPLE_SKIP_TEXT)
		return entity_skip_text(at, end);
	if (kind == TUPLE_SKIP_INT)
		return entity_skip_int(at, end);
	if (kind == TUPLE_SKIP_BOOL)
		return at < end && ((uint8_t)*at & ~1u) == TUPLE_CODE_FALSE ? at + 1 : NULL;
	len = tuple_skip(str_of(at, (size_t)(end - at)), 0, kind);
	return len ? at + len : NULL;
}

/* What makes an entity in the subspace whose number, which is whole, begins at `at`. */
static inline const struct kv_entity *
entity_of_space(const struct emb_entities *entities, const char *at)
{
	if (*at == TUPLE_CODE_INT_ZERO + 1)
		return &entities->kinds[entities->places[(uint8_t)at[1]]];
	return &entities->kinds[*at == TUPLE_CODE_INT_ZERO ? entities->places[0] : 0];
}

/* What is behind the two integers that a key begins with, and what makes an entity there. */
static inline const char *
entity_skip_head(const struct emb_entities *entities, struct str key,
		 const struct kv_entity **ret_entity)
{
	enum {
		ONE = TUPLE_CODE_INT_ZERO + 1, /* an integer of one byte, as most are */
		HEAD_BYTES = 4,
	};
	const char *end = key.ptr + key.len;
	const char *space, *at;

	if (key.len >= HEAD_BYTES && key.ptr[0] == ONE && key.ptr[2] == ONE) {
		*ret_entity = &entities->kinds[entities->places[(uint8_t)key.ptr[3]]];
		return key.ptr + HEAD_BYTES;
	}
	space = entity_skip_int(key.ptr, end);
	at = space ? entity_skip_int(space, end) : NULL;
	if (at)
		*ret_entity = entity_of_space(entities, space);
	return at;
}

size_t
emb_entity_len(const struct emb_entities *entities, struct str key)
{
	const struct kv_entity *entity;
	const enum tuple_skip *kind, *last;
	const char *end, *at;

	if (key.len < LEAST_BYTES)
		return 0;
	end = key.ptr + key.len;
	at = entity_skip_head(entities, key, &entity);
	if (!at || entity->element_count == 0)
		return 0;
	last = entity->elements + entity->element_count;
	for (kind = entity->elements; kind < last; kind++) {
		at = entity_skip(at, end, *kind);
		if (!at)
			return 0;
	}
	return (size_t)(at - key.ptr);
}

size_t
emb_space_len(const struct emb_entities *entities, struct str key)
{
	const struct kv_entity *entity;
	const char *at = key.len < LEAST_BYTES ? NULL : entity_skip_head(entities, key, &entity);

	return at ? (size_t)(at - key.ptr) : 0;
}

/* True if all keys of the range begin with the first `len` bytes of `begin`. */
static bool
range_is_within(struct str begin, struct str end, size_t len)
{
	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	return len && end.len > len && memcmp(begin.ptr, end.ptr, len) == 0 &&
	       ((uint8_t)end.ptr[len] < UINT8_MAX || end.len == len + 1);
}

size_t
emb_range_entity_len(const struct emb_entities *entities, struct str begin, struct str end)
{
	size_t len = emb_entity_len(entities, begin);

	return range_is_within(begin, end, len) ? len : 0;
}

size_t
emb_range_space_len(const struct emb_entities *entities, struct str begin, struct str end)
{
	size_t len = emb_space_len(entities, begin);

	return range_is_within(begin, end, len) ? len : 0;
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

/* Neighbours differ in their last bytes, which are in one word. */
static inline bool
kept_may_be(struct str key)
{
	return key.len >= kept.len &&
	       memcmp(key.ptr + kept.len - WORD_BYTES, kept.beginning + kept.len - WORD_BYTES,
		      WORD_BYTES) == 0;
}

/* By words, of which the last one may have bytes of the one before: they are few. */
static inline void
keep_beginning(const char *from, size_t len)
{
	kept.len = len;
	for (size_t at = 0; at + WORD_BYTES < len; at += WORD_BYTES)
		memcpy(kept.beginning + at, from + at, WORD_BYTES);
	memcpy(kept.beginning + len - WORD_BYTES, from + len - WORD_BYTES, WORD_BYTES);
}

/*
 * emb_entity_len(). A long key that belongs to the same entity as the last one is told by its
 * first bytes and not read.
 */
static size_t
extractor_entity_len(const struct emb_entities *entities, struct str key)
{
	size_t len;

	if (key.len <= SHORT_BYTES)
		return emb_entity_len(entities, key);
	if (kept.id == entities->id && kept_may_be(key) &&
	    emb_entity_has(str_of(kept.beginning, kept.len), key))
		return kept.len;
	len = emb_entity_len(entities, key);
	if (len >= WORD_BYTES && len <= KEPT_BYTES) {
		kept.id = entities->id;
		keep_beginning(key.ptr, len);
	}
	return len;
}

static unsigned char
extractor_in_domain(void *state, const char *key, size_t len)
{
	return extractor_entity_len(state, str_of(key, len)) > 0;
}

static char *
extractor_transform(void *state, const char *key, size_t len, size_t *ret_len)
{
	*ret_len = extractor_entity_len(state, str_of(key, len));
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
