/* The shape that stores are opened with (kv/shape.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kv/embedded/embedded_int.h"
#include "model/revisioned/shape.h"

/* The tables of all stores there are have their filters under this name. */
static void
shape_is_that_of_the_stores_there_are(void **state)
{
	struct emb_entities entities;

	(void)state;
	assert_int_equal(emb_entities_init(&entities, &rev_store_shape, NULL), STATUS_OK);
	assert_string_equal(entities.name, "frond.entities");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shape_is_that_of_the_stores_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
