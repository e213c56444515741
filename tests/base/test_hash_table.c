/* How far somebody looks in a table, and how much moves when it grows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/hash_table.h"

enum {
	ENTRIES = 100000,
	CHAIN_MOST = 16,
};

static size_t
chain_length(const struct hash_table *t, uint64_t hash, const struct hash_entry *wanted)
{
	size_t length = 0;
	bool found = false;

	for (const struct hash_entry *e = hash_table_find(t, hash); e; e = e->next) {
		length++;
		found |= e == wanted;
	}
	assert_int_equal(found, wanted != NULL);
	return length;
}

static void
an_entry_is_found_among_few_however_many_there_are(void **state)
{
	struct hash_entry *entries = calloc(ENTRIES, sizeof(*entries));
	struct hash_table t = { 0 };

	(void)state;
	assert_null(hash_table_find(&t, 5));
	for (size_t i = 0; i < ENTRIES; i++) {
		entries[i].hash = hash_keyed(i, STR("channel"));
		assert_true(hash_table_add(&t, &entries[i]));
		assert_in_range(chain_length(&t, entries[i].hash, &entries[i]), 1, CHAIN_MOST);
		/* Entries of a slot that was split are found in its halves. */
		assert_in_range(chain_length(&t, entries[i / 2].hash, &entries[i / 2]), 1,
				CHAIN_MOST);
	}
	assert_int_equal(t.count, ENTRIES);
	for (size_t i = 0; i < ENTRIES; i++) {
		size_t other = ENTRIES - 1 - i / 2;

		hash_table_remove(&t, &entries[i % 2 ? other : i / 2]);
	}
	assert_int_equal(t.count, 0);
	assert_null(t.slots);
	free(entries);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_is_found_among_few_however_many_there_are),
	};

	return cmocka_run_group_tests_name("hash_table", tests, NULL, NULL);
}
