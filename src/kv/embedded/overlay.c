/*
 * == Invariant ==
 *
 * After each overlay_enter() the overlay tells of every key what the mutations so far have made of
 * it. An entry tells of its own key, whatever the spans say. Without an entry, a key in a `stamped`
 * span is unreadable; else a key in a `cleared` span is absent; else the snapshot decides. So a
 * clear of a range removes the entries in it and takes the range out of `stamped`, and a stamped
 * key makes the entries in its span unreadable. In a `passed` span a read has found no key. If a
 * key in it is written later, the span ends before that key, and another one begins behind it;
 * clearing a key leaves the span as it is.
 */
#include "kv/embedded/overlay.h"

#include <assert.h>

#include "base/big_endian.h"

void
stamp_write(uint8_t ret[KV_VERSIONSTAMP_TX_BYTES], uint64_t version, uint16_t order)
{
	big_endian_put_64(ret, version);
	ret[8] = (uint8_t)(order >> 8);
	ret[9] = (uint8_t)order;
}

void
overlay_init(struct overlay *o)
{
	tree_init(&o->entries);
	tree_init(&o->cleared);
	tree_init(&o->stamped);
	tree_init(&o->passed);
}

static struct overlay_entry *
overlay_entry_of(struct tree_node *n)
{
	return (struct overlay_entry *)n;
}

enum overlay_kind
overlay_look(const struct overlay *o, struct str key, const struct overlay_entry **ret_entry)
{
	struct tree_node *n = tree_find(&o->entries, key);

	*ret_entry = n ? overlay_entry_of(n) : NULL;
	if (n)
		return overlay_entry_of(n)->kind;
	if (span_around(&o->stamped, key))
		return OVERLAY_UNREADABLE;
	return span_around(&o->cleared, key) ? OVERLAY_CLEARED : OVERLAY_NONE;
}

enum status
overlay_resolve(const struct overlay_entry *e, struct cell snapshot, struct arena *a,
		struct cell *ret)
{
	struct cell cell = snapshot;

	switch (e->kind) {
	case OVERLAY_SET:
		*ret = (struct cell){ true, e->value };
		return STATUS_OK;
	case OVERLAY_CLEARED:
		*ret = (struct cell){ 0 };
		return STATUS_OK;
	case OVERLAY_UNREADABLE:
		return STATUS_TX_UNREADABLE;
	case OVERLAY_NONE:
	case OVERLAY_ATOMIC:
		break;
	}
	assert(e->kind == OVERLAY_NONE || (e->first && e->last));
	for (const struct mutation *m = e->first; m; m = m == e->last ? NULL : m->chained)
		TRY(atomic_apply(m->op, cell, m->value, a, &cell));
	*ret = cell;
	return STATUS_OK;
}

/* The entry of a key. A new one begins with what the spans say of the key. NULL: out of memory. */
static struct overlay_entry *
overlay_entry_at(struct overlay *o, struct arena *a, struct str key)
{
	const struct overlay_entry *found;
	enum overlay_kind kind = overlay_look(o, key, &found);
	struct overlay_entry *e;

	if (found)
		return overlay_entry_of(tree_find(&o->entries, key));
	e = arena_zalloc(a, sizeof(*e));
	if (!e)
		return NULL;
	e->node.key = key;
	e->kind = kind;
	tree_insert(&o->entries, &e->node);
	return e;
}

/* Reads have to look at the key from now on. */
static enum status
overlay_look_again(struct overlay *o, struct arena *a, struct str key)
{
	struct str begin;

	if (!span_around(&o->passed, key))
		return STATUS_OK;
	begin = arena_dup(a, key);
	if (!begin.ptr)
		return STATUS_NOMEM;
	/* With the zero byte behind the copy it is the next possible key. */
	return span_subtract(&o->passed, a, begin, str_of(begin.ptr, begin.len + 1));
}

static enum status
overlay_enter_atomic(struct overlay *o, struct arena *a, struct mutation *m)
{
	struct overlay_entry *e = overlay_entry_at(o, a, m->key);
	struct cell cell;

	if (!e)
		return STATUS_NOMEM;
	switch (e->kind) {
	case OVERLAY_UNREADABLE:
		return STATUS_OK;
	case OVERLAY_SET:
	case OVERLAY_CLEARED:
		/* The value is known already: the operation can be applied at once. */
		TRY(overlay_resolve(e, (struct cell){ 0 }, a, &cell));
		TRY(atomic_apply(m->op, cell, m->value, a, &cell));
		e->kind = cell.present ? OVERLAY_SET : OVERLAY_CLEARED;
		e->value = cell.value;
		m->applied = true;
		return STATUS_OK;
	case OVERLAY_NONE:
		e->kind = OVERLAY_ATOMIC;
		e->first = m;
		break;
	case OVERLAY_ATOMIC:
		assert(e->last);
		e->last->chained = m;
		break;
	}
	e->last = m;
	return STATUS_OK;
}

static enum status
overlay_enter_range(struct overlay *o, struct arena *a, struct mutation *m)
{
	struct str begin = m->key;
	struct str end = m->value;
	struct tree_node *n;

	assert(str_cmp(begin, end) < 0);
	TRY(span_add(&o->cleared, a, begin, end));
	if (span_first_in(&o->stamped, begin, end)) {
		m->meets_own_write = true;
		TRY(span_subtract(&o->stamped, a, begin, end));
	}
	while ((n = tree_at_or_after(&o->entries, begin)) && str_cmp(n->key, end) < 0) {
		if (overlay_entry_of(n)->kind != OVERLAY_CLEARED)
			m->meets_own_write = true;
		tree_remove(&o->entries, n);
	}
	return STATUS_OK;
}

enum status
overlay_note_passed(struct overlay *o, struct arena *a, struct str begin, struct str end)
{
	return span_add(&o->passed, a, begin, end);
}

/*
 * The range of keys that a stamped key may become: from the lowest stamp above the read version to
 * the highest that there is.
 */
static enum status
mutation_stamped_span(const struct mutation *m, struct arena *a, uint64_t read_version,
		      struct str *ret_begin, struct str *ret_end)
{
	size_t len = m->key.len;
	char *begin = arena_bytes(a, len);
	char *end = arena_bytes(a, len + 1);

	assert(m->stamp_offset + KV_VERSIONSTAMP_TX_BYTES <= len);
	if (!begin || !end)
		return STATUS_NOMEM;
	memcpy(begin, m->key.ptr, len);
	memcpy(end, m->key.ptr, len);
	stamp_write((uint8_t *)begin + m->stamp_offset, read_version + 1, 0);
	memset(end + m->stamp_offset, 0xff, KV_VERSIONSTAMP_TX_BYTES);
	end[len] = '\0';
	*ret_begin = str_of(begin, len);
	*ret_end = str_of(end, len + 1);
	return STATUS_OK;
}

static enum status
overlay_enter_stamped_key(struct overlay *o, struct arena *a, struct mutation *m,
			  uint64_t read_version)
{
	struct str begin;
	struct str end;

	TRY(mutation_stamped_span(m, a, read_version, &begin, &end));
	TRY(span_add(&o->stamped, a, begin, end));
	TRY(span_subtract(&o->passed, a, begin, end));
	for (struct tree_node *n = tree_at_or_after(&o->entries, begin);
	     n && str_cmp(n->key, end) < 0; n = tree_next(n))
		overlay_entry_of(n)->kind = OVERLAY_UNREADABLE;
	return STATUS_OK;
}

enum status
overlay_enter(struct overlay *o, struct arena *a, struct mutation *m, uint64_t read_version)
{
	struct overlay_entry *e;

	if (m->kind == MUTATION_CLEAR_RANGE)
		return overlay_enter_range(o, a, m);
	if (m->kind == MUTATION_STAMPED_KEY)
		return overlay_enter_stamped_key(o, a, m, read_version);
	if (m->kind != MUTATION_CLEAR)
		TRY(overlay_look_again(o, a, m->key));
	if (m->kind == MUTATION_ATOMIC)
		return overlay_enter_atomic(o, a, m);
	e = overlay_entry_at(o, a, m->key);
	if (!e)
		return STATUS_NOMEM;
	e->value = m->value;
	e->kind = m->kind == MUTATION_SET     ? OVERLAY_SET
		  : m->kind == MUTATION_CLEAR ? OVERLAY_CLEARED
					      : OVERLAY_UNREADABLE;
	return STATUS_OK;
}
