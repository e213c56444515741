#include "model/plain/plain_int.h"

#include "loop/sort.h"
#include "loop/step.h"

/*
 * A document becomes a pair for each value in it, containers among them: (path…) → the leaf. The
 * leaf of a container says which one it is, and the ordinal that its next member will have, so that
 * a member is added without reading the others.
 */

struct explode_level {
	struct bson_iter rest;
	size_t path_bytes; /* of the container itself */
	uint64_t next;
	size_t pair; /* of the container, SIZE_MAX for the document */
	struct plain_leaf leaf;
	bool array;
};

struct explosion {
	struct arena *arena;
	struct plain_pairs *pairs;
	size_t prefix_bytes;
	struct buf path;
	struct buf value;
	size_t depth;
	struct explode_level levels[BSON_DEPTH + 1];
};

enum status
plain_pairs_add(struct plain_pairs *pairs, struct arena *arena, struct str key, struct str value)
{
	struct kv_pair *grown = arena_grow(arena, pairs->pairs, pairs->count, &pairs->cap,
					   sizeof(*grown));

	if (!grown)
		return STATUS_LIMIT;
	pairs->pairs = grown;
	TRY(catalog_pair_copy(arena, key, value, &grown[pairs->count]));
	pairs->count++;
	pairs->bytes += KV_SIZE_EACH_BYTES + key.len + value.len;
	return STATUS_OK;
}

static enum status
leaf_bytes(struct explosion *x, const struct plain_leaf *leaf)
{
	enum status status;

	buf_clear(&x->value);
	status = plain_leaf_put(leaf, &x->value);
	return status == STATUS_LIMIT ? STATUS_UNSUPPORTED : status;
}

/* The pair of a value at the path, and the level of a container. */
static enum status
explode_put(struct explosion *x, const struct bson_value *v, uint64_t ordinal)
{
	struct plain_leaf leaf = { .ordinal = ordinal, .value = *v };

	TRY(step_count(2));
	if (x->prefix_bytes + x->path.len > PLAIN_KEY_BYTES ||
	    x->pairs->bytes + x->pairs->count * x->prefix_bytes > PLAIN_LEAVES_BYTES)
		return STATUS_UNSUPPORTED;
	if (bson_is_container(v)) {
		if (x->depth > BSON_DEPTH)
			return STATUS_UNSUPPORTED;
		x->levels[x->depth] = (struct explode_level){
			.path_bytes = x->path.len,
			.pair = x->pairs->count,
			.leaf = leaf,
			.array = v->type == BSON_ARRAY,
		};
		bson_iter_begin(&x->levels[x->depth++].rest, bson_text(v));
	}
	TRY(leaf_bytes(x, &leaf));
	return plain_pairs_add(x->pairs, x->arena, buf_str(&x->path), buf_str(&x->value));
}

/* The container's leaf with the next ordinal, which is known at its end. */
static enum status
explode_end(struct explosion *x)
{
	struct explode_level *level = &x->levels[--x->depth];
	struct kv_pair *pair;
	struct str value;

	if (level->pair == SIZE_MAX || !level->next)
		return STATUS_OK;
	level->leaf.next = level->next;
	TRY(leaf_bytes(x, &level->leaf));
	value = buf_dup(&x->value, x->arena);
	pair = &x->pairs->pairs[level->pair];
	if (!value.ptr)
		return STATUS_LIMIT;
	pair->value = value;
	return STATUS_OK;
}

static enum status
explode_element(struct explosion *x, struct explode_level *level, const struct bson_element *e)
{
	uint32_t position;

	/* Another `_id` of the document, behind the one that it begins with. */
	if (level->pair == SIZE_MAX && str_eq(e->name, STR("_id")))
		return STATUS_UNSUPPORTED;
	x->path.len = level->path_bytes;
	if (level->array) {
		if (!plain_step_is_position(e->name, &position) || position != level->next)
			return STATUS_UNSUPPORTED;
		tuple_put_u64(&x->path, position);
	} else {
		tuple_put_str(&x->path, e->name);
	}
	if (buf_status(&x->path) != STATUS_OK)
		return buf_status(&x->path) == STATUS_LIMIT ? STATUS_UNSUPPORTED
							    : buf_status(&x->path);
	return explode_put(x, &e->value, level->next++);
}

static enum status
compare_keys(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(((const struct kv_pair *)a)->key, ((const struct kv_pair *)b)->key,
				 ret);
}

/* Sorts the pairs: two with one key are members of one name. */
static enum status
explode_sort(struct plain_pairs *pairs, struct arena *arena)
{
	TRY(sort_items(pairs->pairs, pairs->count, sizeof(*pairs->pairs), compare_keys, NULL,
		       arena));
	for (size_t i = 1; i < pairs->count; i++)
		if (str_eq(pairs->pairs[i - 1].key, pairs->pairs[i].key))
			return STATUS_UNSUPPORTED;
	return STATUS_OK;
}

static enum status
explode_run(struct explosion *x)
{
	struct bson_element e;

	while (x->depth) {
		struct explode_level *level = &x->levels[x->depth - 1];

		if (bson_iter_read(&level->rest, &e))
			TRY(explode_element(x, level, &e));
		else
			TRY(explode_end(x));
	}
	return explode_sort(x->pairs, x->arena);
}

static void
explode_init(struct explosion *x, size_t prefix_bytes, struct arena *arena,
	     struct plain_pairs *pairs)
{
	*pairs = (struct plain_pairs){ 0 };
	x->arena = arena;
	x->pairs = pairs;
	x->prefix_bytes = prefix_bytes;
	x->path = BUF_INIT(KV_LIMIT_KEY_BYTES);
	x->value = BUF_INIT(KV_LIMIT_VALUE_BYTES - 1);
	x->depth = 0;
}

static void
explode_release(struct explosion *x)
{
	buf_release(&x->path);
	buf_release(&x->value);
}

enum status
plain_explode(struct str document, size_t prefix_bytes, struct arena *arena,
	      struct plain_pairs *ret, uint64_t *ret_next)
{
	struct explosion x;
	struct bson_element id;
	enum status status = STATUS_OK;

	explode_init(&x, prefix_bytes, arena, ret);
	x.levels[0] = (struct explode_level){ .pair = SIZE_MAX };
	x.depth = 1;
	bson_iter_begin(&x.levels[0].rest, document);
	/* The `_id` comes first and is in the key and the root. */
	if (!bson_iter_read(&x.levels[0].rest, &id))
		status = STATUS_CORRUPT;
	if (status == STATUS_OK)
		status = explode_run(&x);
	*ret_next = x.levels[0].next;
	explode_release(&x);
	return status;
}

enum status
plain_explode_value(const struct bson_value *v, uint64_t ordinal, struct str path,
		    size_t prefix_bytes, struct arena *arena, struct plain_pairs *ret)
{
	struct explosion x;
	enum status status;

	explode_init(&x, prefix_bytes, arena, ret);
	buf_append_str(&x.path, path);
	status = buf_status(&x.path);
	if (status == STATUS_OK)
		status = explode_put(&x, v, ordinal);
	if (status == STATUS_OK)
		status = explode_run(&x);
	explode_release(&x);
	return status;
}
