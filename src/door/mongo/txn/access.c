#include "door/mongo/txn/access.h"

#include <string.h>

enum {
	KEY_BYTES = 2 * sizeof(uint64_t),
};

/* The numbers of an index, as they lie in memory. */
static struct str
access_key(uint64_t db, uint64_t index, char room[static KEY_BYTES])
{
	memcpy(room, &db, sizeof(db));
	memcpy(room + sizeof(db), &index, sizeof(index));
	return str_of(room, KEY_BYTES);
}

void
accesses_init(struct counts *accesses)
{
	counts_init(accesses, 1, ACCESS_INDEXES);
}

static void
access_count(struct counts *accesses, const struct access *use)
{
	char room[KEY_BYTES];

	counts_add(accesses, access_key(use->db, use->index, room), 0, &use->ops, 1);
}

bool
access_read(struct counts *accesses, uint64_t db, uint64_t index, uint64_t *ret_ops)
{
	char room[KEY_BYTES];

	return counts_read(accesses, access_key(db, index, room), ret_ops);
}

void
access_use(struct counts *accesses, struct access_uses *u, uint64_t db, uint64_t index)
{
	const struct access use = { db, index, 1 };

	for (size_t i = 0; u && i < u->count; i++)
		if (u->all[i].db == db && u->all[i].index == index) {
			u->all[i].ops++;
			return;
		}
	if (!u || u->count == ACCESS_USES)
		access_count(accesses, &use);
	else
		u->all[u->count++] = use;
}

void
access_count_uses(struct counts *accesses, const struct access_uses *u)
{
	for (size_t i = 0; i < u->count; i++)
		access_count(accesses, &u->all[i]);
}
