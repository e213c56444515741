/* What an edit does to attachments: stubs get the parent's attachments, and counters are kept. */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "loop/step.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

static int
att_compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Refuses two attachments with one name. Sorting finds them among thousands, too. */
static enum status
att_check_names_distinct(const struct rev_edit *edit)
{
	AUTO(buf_release) struct buf names = BUF_INIT(REV_ATTS_MAX * sizeof(struct str));
	const struct str *sorted;

	if (edit->atts_count < 2)
		return STATUS_OK;
	for (size_t i = 0; i < edit->atts_count; i++)
		buf_append(&names, &edit->atts[i].att.name, sizeof(struct str));
	TRY(buf_status(&names));
	qsort(names.ptr, edit->atts_count, sizeof(struct str), att_compare_names);
	sorted = (const struct str *)(const void *)names.ptr;
	for (size_t i = 1; i < edit->atts_count; i++)
		if (str_eq(sorted[i - 1], sorted[i]))
			return STATUS_INVALID;
	return STATUS_OK;
}

enum status
rev_atts_check(const struct rev_edit *edit, size_t prefix_bytes, size_t key_limit)
{
	if (edit->atts_count > REV_ATTS_MAX)
		return STATUS_DOC_TOO_LARGE;
	for (size_t i = 0; i < edit->atts_count; i++) {
		const struct rev_att *att = &edit->atts[i].att;

		/*
		 * The key goes on with the mark and the name. The end of a range is a byte longer.
		 */
		if (prefix_bytes + 1 + rev_encoded_bytes(att->name) >= key_limit)
			return STATUS_KEY_TOO_LARGE;
		if (att->type.len > REV_ATT_TYPE_BYTES)
			return STATUS_INVALID;
	}
	return att_check_names_distinct(edit);
}

/* The attachments of a list by their names: a table with open addressing. */
struct att_names {
	const struct rev_att_list *list;
	uint32_t *slots; /* numbers plus one; 0: free */
	size_t mask;
};

static enum status
att_names_init(struct att_names *names, const struct rev_att_list *list, struct arena *arena)
{
	size_t slots = hash_slots(list->count);

	*names = (struct att_names){
		.list = list,
		.slots = arena_zalloc(arena, slots * sizeof(*names->slots)),
		.mask = slots - 1,
	};
	if (!names->slots)
		return STATUS_LIMIT;
	for (size_t i = 0; i < list->count; i++) {
		size_t at = hash_keyed(0, list->atts[i].name) & names->mask;

		while (names->slots[at])
			at = (at + 1) & names->mask;
		names->slots[at] = (uint32_t)i + 1;
	}
	return step_count((uint32_t)list->count);
}

static const struct rev_att *
att_names_find(const struct att_names *names, struct str name)
{
	size_t at = hash_keyed(0, name) & names->mask;

	for (; names->slots[at]; at = (at + 1) & names->mask) {
		const struct rev_att *att = &names->list->atts[names->slots[at] - 1];

		if (str_eq(att->name, name))
			return att;
	}
	return NULL;
}

enum status
rev_atts_resolve(const struct rev_edit *edit, const struct rev_att_list *from, uint64_t revpos,
		 struct arena *arena, struct rev_att **ret, struct str *ret_name)
{
	struct rev_att *atts = arena_alloc(arena, edit->atts_count * sizeof(*atts));
	struct att_names names;

	if (!atts)
		return STATUS_LIMIT;
	TRY(att_names_init(&names, from, arena));
	for (size_t i = 0; i < edit->atts_count; i++) {
		const struct rev_att_edit *wanted = &edit->atts[i];
		const struct rev_att *found;

		atts[i] = wanted->att;
		if (wanted->source != REV_ATT_STUB) {
			if (revpos)
				atts[i].revpos = revpos;
			continue;
		}
		found = att_names_find(&names, wanted->att.name);
		if (!found || (wanted->has_revpos && wanted->att.revpos != found->revpos)) {
			*ret_name = wanted->att.name;
			return STATUS_ATT_MISSING;
		}
		atts[i] = *found;
	}
	*ret = atts;
	return STATUS_OK;
}

enum status
rev_atts_inherit(const struct rev_edit *parent, const struct rev_att_list *from,
		 const struct rev_att *atts, struct arena *arena, const struct rev_edit **edit)
{
	size_t count = (*edit)->atts_count;
	struct rev_edit *own = arena_alloc(arena, sizeof(*own));
	struct rev_att_edit *own_atts = arena_alloc(arena, count * sizeof(*own_atts));
	struct att_names names;

	assert(from->count == parent->atts_count);
	if (!own || !own_atts)
		return STATUS_LIMIT;
	TRY(att_names_init(&names, from, arena));
	for (size_t i = 0; i < count; i++) {
		const struct rev_att_edit *brought;

		own_atts[i] = (*edit)->atts[i];
		if (own_atts[i].source != REV_ATT_STUB)
			continue;
		/* A stub that has been resolved is there. */
		brought = &parent->atts[att_names_find(&names, own_atts[i].att.name) - from->atts];
		if (brought->source != REV_ATT_DATA)
			continue;
		own_atts[i] = *brought;
		own_atts[i].att = atts[i];
	}
	*own = **edit;
	own->atts = own_atts;
	*edit = own;
	return STATUS_OK;
}

enum status
rev_data_count(struct rev_writer *w, const uint8_t id[REV_ATT_ID_BYTES], int64_t change)
{
	struct rev_att_delta *delta;

	TRY(catalog_array_grow(w->arena, (void **)&w->deltas, sizeof(*w->deltas), w->deltas_count,
			       &w->deltas_cap));
	delta = &w->deltas[w->deltas_count++];
	*delta = (struct rev_att_delta){ .change = change };
	memcpy(delta->id, id, sizeof(delta->id));
	return STATUS_OK;
}

enum status
rev_atts_count(struct rev_writer *w, const struct rev_att *atts, size_t count, int64_t change)
{
	for (size_t i = 0; i < count; i++)
		TRY(rev_data_count(w, atts[i].id, change));
	return STATUS_OK;
}

static enum status
att_write_pointer(struct rev_writer *w, const struct rev_att *att, uint64_t order)
{
	tuple_put_null(&w->key);
	tuple_put_str(&w->key, att->name);
	TRY(catalog_key_status(&w->key));
	rev_att_put(&w->value, att, order);
	TRY(buf_status(&w->value));
	return kv_set(w->tx, buf_str(&w->key), buf_str(&w->value));
}

enum status
rev_atts_write(struct rev_writer *w, const struct rev_update *u)
{
	size_t prefix_len = w->key.len;

	for (size_t i = 0; i < u->edit->atts_count; i++) {
		w->key.len = prefix_len;
		TRY(att_write_pointer(w, &u->atts[i], i));
	}
	for (size_t i = 0; i < u->edit->atts_count; i++) {
		const struct rev_att_edit *from = &u->edit->atts[i];

		if (from->source == REV_ATT_DATA)
			TRY(rev_att_write_data(w->tx, w->db, from->att.id, 0, from->data, &w->key));
		if (from->source == REV_ATT_STAGED) {
			rev_key_upload(&w->key, w->db->number, from->att.id);
			TRY(catalog_key_status(&w->key));
			TRY(kv_clear(w->tx, buf_str(&w->key)));
		}
	}
	return rev_atts_count(w, u->atts, u->edit->atts_count, 1);
}

/* ---- The end of a batch ---- */

static int
att_compare_deltas(const void *a, const void *b)
{
	return memcmp(a, b, REV_ATT_ID_BYTES);
}

/* Adds up the deltas of each attachment, and leaves out those whose sum is 0. */
static size_t
att_merge_deltas(struct rev_att_delta *deltas, size_t count)
{
	size_t kept = 0;

	_Static_assert(offsetof(struct rev_att_delta, id) == 0, "compared by its beginning");
	qsort(deltas, count, sizeof(*deltas), att_compare_deltas);
	for (size_t i = 0; i < count;) {
		struct rev_att_delta sum = deltas[i];

		for (i++; i < count && att_compare_deltas(&sum, &deltas[i]) == 0; i++)
			sum.change += deltas[i].change;
		if (sum.change)
			deltas[kept++] = sum;
	}
	return kept;
}

static enum status
att_add_to_counter(struct rev_writer *w, const struct rev_att_delta *delta)
{
	uint8_t operand[8];

	for (int i = 0; i < 8; i++)
		operand[i] = (uint8_t)((uint64_t)delta->change >> (8 * i));
	rev_key_att(&w->key, w->db, REV_ATT_SPACE_REFS, delta->id);
	TRY(catalog_key_status(&w->key));
	return kv_atomic(w->tx, KV_ADD, buf_str(&w->key), str_of(operand, sizeof(operand)));
}

static enum status
att_wait_for_counter(struct kv_future *f, int64_t *ret)
{
	struct str value;
	uint64_t n = 0;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value) || value.len != 8)
		return STATUS_CORRUPT;
	for (size_t i = 0; i < value.len; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	*ret = (int64_t)n;
	return STATUS_OK;
}

enum status
rev_atts_settle(struct rev_writer *w)
{
	size_t count;

	if (w->deltas_count == 0)
		return STATUS_OK;
	count = att_merge_deltas(w->deltas, w->deltas_count);
	for (size_t i = 0; i < count; i++) {
		struct rev_att_delta *delta = &w->deltas[i];

		if (delta->change > 0)
			continue;
		rev_key_att(&w->key, w->db, REV_ATT_SPACE_REFS, delta->id);
		TRY(catalog_key_status(&w->key));
		delta->refs = kv_get(w->tx, buf_str(&w->key), KV_READ);
	}
	for (size_t i = 0; i < count; i++) {
		struct rev_att_delta *delta = &w->deltas[i];
		int64_t refs = 0;

		if (delta->refs)
			TRY(att_wait_for_counter(delta->refs, &refs));
		if (delta->change < 0 && refs + delta->change < 0)
			return STATUS_CORRUPT;
		if (delta->change < 0 && refs + delta->change == 0)
			TRY(rev_att_clear(w->tx, w->db, delta->id, &w->key));
		else
			TRY(att_add_to_counter(w, delta));
	}
	return STATUS_OK;
}
