#include "catalog/space.h"

static const struct {
	enum catalog_space space;
	const char *prefix;
} spaces[] = {
	{ CATALOG_SPACE_ROWS, "rows:" },
	{ CATALOG_SPACE_REDIS, "redis:" },
	{ CATALOG_SPACE_MONGO, "mongo:" },
	{ CATALOG_SPACE_TABLE, "table:" },
};

const char *
catalog_space_prefix(enum catalog_space space)
{
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (spaces[i].space == space)
			return spaces[i].prefix;
	return "";
}

enum catalog_space
catalog_space_cut(struct str *name)
{
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		struct str prefix = str_from_cstr(spaces[i].prefix);

		if (str_starts_with(*name, prefix)) {
			*name = str_skip(*name, prefix.len);
			return spaces[i].space;
		}
	}
	return CATALOG_SPACE_COUCH;
}
