/*
 * Any bytes as the members of a small collection that lies in its header. The first byte says of
 * which type. What is read is written as the same bytes; each member is found by its name, and a
 * pack that has lost one and got it back is what it was.
 */
#include "model/timed/items/pack.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must_be(const struct timed_pack *pack, struct str bytes)
{
	static char room[TIMED_PACK_BYTES];
	struct buf written = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	timed_pack_put(pack, &written);
	must(buf_status(&written) == STATUS_OK && str_eq(buf_str(&written), bytes));
}

static void
lose_each(struct timed_pack *pack, struct str bytes)
{
	for (size_t i = 0; i < pack->count; i++) {
		struct timed_pack_member *found = timed_pack_find(pack, pack->members[i].name);
		struct timed_pack_member m = pack->members[i];

		must(found == &pack->members[i]);
		timed_pack_remove(pack, found);
		must(!timed_pack_find(pack, m.name));
		must(timed_pack_add(pack, &m));
		must_be(pack, bytes);
	}
}

static volatile uint64_t looked; /* so that the looks are not left out */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum timed_type types[] = { TIMED_HASH, TIMED_SET, TIMED_ZSET };
	static struct timed_pack pack;
	struct str bytes = str_of(data, size);

	if (!size)
		return 0;
	bytes = str_skip(bytes, 1);
	if (timed_pack_parse(types[data[0] % 3], bytes, &pack) != STATUS_OK)
		return 0;
	must(pack.count && pack.count <= TIMED_PACK_MEMBERS);
	for (size_t i = 0; i < pack.count; i++) {
		expect_inside(pack.members[i].name, bytes);
		expect_inside(pack.members[i].value, bytes);
		looked += look(pack.members[i].name) + look(pack.members[i].value);
	}
	must_be(&pack, bytes);
	must(timed_pack_rank(&pack, STR("")) == 0);
	if (timed_pack_is_sound(&pack))
		lose_each(&pack, bytes);
	return 0;
}
