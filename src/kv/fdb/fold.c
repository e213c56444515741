/*
 * Folding: members of a joint commit often change the same key without reading it. They add to a
 * counter, raise a number to a maximum, or set the stamp of the newest change. Several such changes
 * of a key become one: the sum, the greatest number, the last stamp. They are about half of the
 * changes of a small write.
 *
 * To fold them, a change is put off. That makes no difference as long as nothing else happens to
 * its key in between, so it is made before any other kind of change of that key, before a range is
 * cleared, and at the end.
 */
#include "base/hash.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

void
fdb_fold_init(struct fdb_fold *fold, FDBTransaction *tx)
{
	fold->tx = tx;
	fold->count = 0;
	memset(fold->table, 0, sizeof(fold->table));
}

/* The slot of the key; NULL if it has none, and `*ret_at` is where the table gets it. */
static struct fdb_fold_slot *
fold_find(struct fdb_fold *fold, struct str key, size_t *ret_at)
{
	size_t at = (size_t)(hash_quick(key) % FDB_FOLD_TABLE);

	for (; fold->table[at]; at = (at + 1) % FDB_FOLD_TABLE) {
		struct fdb_fold_slot *slot = &fold->slots[fold->table[at] - 1];

		if (str_eq(slot->note.first, key))
			return slot;
	}
	*ret_at = at;
	return NULL;
}

/* The slot of the key, or a new one that nothing is put off in. NULL: none is free. */
static struct fdb_fold_slot *
fold_slot(struct fdb_fold *fold, struct str key)
{
	size_t at;
	struct fdb_fold_slot *slot = fold_find(fold, key, &at);

	if (slot || fold->count == FDB_FOLD_SLOTS)
		return slot;
	slot = &fold->slots[fold->count++];
	*slot = (struct fdb_fold_slot){ 0 };
	fold->table[at] = (uint8_t)fold->count;
	return slot;
}

static int
slot_do(struct fdb_fold *fold, struct fdb_fold_slot *slot)
{
	if (!slot->pending)
		return 0;
	slot->pending = false;
	return fdb_note_do(fold->tx, &slot->note);
}

int
fdb_fold_end(struct fdb_fold *fold)
{
	int code = 0;

	for (size_t i = 0; i < fold->count && code == 0; i++)
		code = slot_do(fold, &fold->slots[i]);
	return code;
}

static bool
folds(const struct fdb_note *note)
{
	if (note->kind != FDB_NOTE_MUTATION)
		return false;
	if (note->mutation == FDB_MUTATION_STAMPED_VALUE)
		return true;
	return (note->mutation == FDB_MUTATION_ADD || note->mutation == FDB_MUTATION_MAX) &&
	       note->second.len > 0 && note->second.len <= FDB_NUMBER_BYTES;
}

/* Numbers of the same length: to add both is to add their sum, without what overflows. */
static void
number_add(uint8_t *sum, struct str operand)
{
	unsigned carry = 0;

	for (size_t i = 0; i < operand.len; i++) {
		carry += sum[i] + (unsigned)(uint8_t)operand.ptr[i];
		sum[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static void
number_max(uint8_t *most, struct str operand)
{
	for (size_t i = operand.len; i-- > 0;) {
		uint8_t other = (uint8_t)operand.ptr[i];

		if (other < most[i])
			return;
		if (other > most[i])
			break;
	}
	memcpy(most, operand.ptr, operand.len);
}

static void
slot_put(struct fdb_fold_slot *slot, const struct fdb_note *note)
{
	slot->note = *note;
	slot->pending = true;
	if (note->mutation == FDB_MUTATION_STAMPED_VALUE)
		return;
	memcpy(slot->number, note->second.ptr, note->second.len);
	slot->note.second = str_of(slot->number, note->second.len);
}

/* Adds the note to what is put off for its key. False: the two are not of one kind. */
static bool
slot_add(struct fdb_fold_slot *slot, const struct fdb_note *note)
{
	if (!slot->pending || slot->note.mutation != note->mutation)
		return false;
	if (note->mutation == FDB_MUTATION_STAMPED_VALUE) {
		slot->note.second = note->second;
		return true;
	}
	if (slot->note.second.len != note->second.len)
		return false;
	if (note->mutation == FDB_MUTATION_ADD)
		number_add(slot->number, note->second);
	else
		number_max(slot->number, note->second);
	return true;
}

static int
fold_add(struct fdb_fold *fold, const struct fdb_note *note)
{
	struct fdb_fold_slot *slot = fold_slot(fold, note->first);
	int code;

	if (!slot)
		return fdb_note_do(fold->tx, note);
	if (slot_add(slot, note))
		return 0;
	code = slot_do(fold, slot);
	if (code == 0)
		slot_put(slot, note);
	return code;
}

/* Before another operation of this key: what is put off for it. */
static int
fold_settle(struct fdb_fold *fold, struct str key)
{
	size_t at;
	struct fdb_fold_slot *slot = fold_find(fold, key, &at);

	return slot ? slot_do(fold, slot) : 0;
}

int
fdb_fold_note(struct fdb_fold *fold, const struct fdb_note *note)
{
	int code = 0;

	if (folds(note))
		return fold_add(fold, note);
	switch (note->kind) {
	case FDB_NOTE_CLEAR_RANGE:
		code = fdb_fold_end(fold);
		break;
	case FDB_NOTE_SET:
	case FDB_NOTE_SET_NO_CONFLICT:
	case FDB_NOTE_CLEAR:
	case FDB_NOTE_MUTATION:
		code = fold_settle(fold, note->first);
		break;
	case FDB_NOTE_READ_CONFLICT:
	case FDB_NOTE_WRITE_CONFLICT:
		break;
	}
	return code ? code : fdb_note_do(fold->tx, note);
}
