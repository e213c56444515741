#include "door/couch/wire/kept.h"

#include <string.h>

void
couch_kept_unref(struct couch_kept *kept)
{
	if (kept && --kept->refs == 0)
		kept->free(kept);
}

void
couch_kept_hold(struct couch_kept **at, struct couch_kept *kept)
{
	kept->refs++;
	couch_kept_unref(*at);
	*at = kept;
}

void
couch_kept_table_release(struct couch_kept_table *table)
{
	for (size_t i = 0; i < COUCH_KEPT_SLOTS; i++) {
		couch_kept_unref(table->slots[i].kept);
		table->slots[i].kept = NULL;
	}
}

struct couch_kept *
couch_kept_find(const struct couch_kept_table *table, uint64_t number,
		const uint8_t version[KV_VERSIONSTAMP_TX_BYTES])
{
	const struct couch_kept_slot *slot = &table->slots[number % COUCH_KEPT_SLOTS];

	if (slot->number != number || memcmp(slot->version, version, KV_VERSIONSTAMP_TX_BYTES) != 0)
		return NULL;
	return slot->kept;
}

void
couch_kept_put(struct couch_kept_table *table, uint64_t number,
	       const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], struct couch_kept *kept)
{
	struct couch_kept_slot *slot = &table->slots[number % COUCH_KEPT_SLOTS];

	couch_kept_hold(&slot->kept, kept);
	slot->number = number;
	memcpy(slot->version, version, KV_VERSIONSTAMP_TX_BYTES);
}
