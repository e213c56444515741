#ifndef FROND_TESTS_MODEL_TIMED_TABLES_PACKING_H
#define FROND_TESTS_MODEL_TIMED_TABLES_PACKING_H

/* Tables of either packing: with FROND_TEST_PACKED, INSERT packs rows. */
#include <stdlib.h>
#include <string.h>

#include "model/timed/tables/tables.h"

enum {
	PACKING_PROPERTIES = 4,
};

static inline enum status
packing_create(struct kv_tx *tx, struct str name, const struct table_schema *given,
	       uint64_t default_ttl_ms)
{
	struct table_property properties[PACKING_PROPERTIES] = { { STR(TABLE_PROPERTY_PACKED),
								   STR("true") } };
	struct table_schema schema = *given;

	if (!getenv("FROND_TEST_PACKED"))
		return table_create(tx, name, given, default_ttl_ms, NULL);
	assert_true(given->property_count < PACKING_PROPERTIES);
	if (given->property_count)
		memcpy(properties + 1, given->properties,
		       given->property_count * sizeof(*properties));
	schema.properties = properties;
	schema.property_count = given->property_count + 1;
	return table_create(tx, name, &schema, default_ttl_ms, NULL);
}

#endif
