/* The shape that stores are opened with (kv/shape.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kv/embedded/embedded_int.h"
#include "model/revisioned/shape.h"

/* Tables that were written under another name are read without filters of entities. */
static void
shape_has_the_name_that_tables_keep(void **state)
{
	struct emb_entities entities;

	(void)state;
	assert_int_equal(emb_entities_init(&entities, &rev_store_shape, NULL), STATUS_OK);
	assert_string_equal(entities.name, "frond.entities *:t 4:tbit 12:it");
}

/* An entry of an index belongs to those with the same value of the first column. */
static void
entries_of_one_value_are_an_entity(void **state)
{
	static const struct str value = STR("\x15\x07\x15\x0c\x15\x03\x01v\x00");
	static const struct str entry = STR("\x15\x07\x15\x0c\x15\x03\x01v\x00\x02id\x00");
	static const struct str end = STR("\x15\x07\x15\x0c\x15\x03\x01v\x00\xff");
	static const struct str next = STR("\x15\x07\x15\x0c\x15\x03\x01w\x00");
	struct emb_entities entities;

	(void)state;
	assert_int_equal(emb_entities_init(&entities, &rev_store_shape, NULL), STATUS_OK);
	assert_int_equal(emb_entity_len(&entities, entry), value.len);
	assert_true(emb_range_entity_len(&entities, value, end));
	assert_true(emb_range_entity_len(&entities, entry, end)); /* behind a bookmark */
	assert_false(emb_range_entity_len(&entities, value, next));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shape_has_the_name_that_tables_keep),
		cmocka_unit_test(entries_of_one_value_are_an_entity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
