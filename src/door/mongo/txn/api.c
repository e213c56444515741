/* The stable API: what a client that asks for it is kept to. */
#include "door/mongo/txn/command.h"

enum status
api_check(struct call *c)
{
	struct bson_value version, strict = BSON_OF_BOOL(false), deprecated = BSON_OF_BOOL(false);
	bool has_strict, has_deprecated;

	if (!c->has_more)
		return STATUS_OK;
	has_strict = bson_find(c->body, STR("apiStrict"), &strict);
	has_deprecated = bson_find(c->body, STR("apiDeprecationErrors"), &deprecated);
	if (!bson_find(c->body, STR("apiVersion"), &version)) {
		if (!has_strict && !has_deprecated)
			return STATUS_OK;
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Provided apiStrict and/or apiDeprecationErrors without passing "
				 "apiVersion");
	}
	if (version.type != BSON_STRING)
		return call_type_mismatch(c, &version, "type 'string'", "apiVersion");
	if (!str_eq(bson_text(&version), STR("1")))
		return call_fail(c, MONGO_API_VERSION, "API version must be \"1\"");
	if (strict.type != BSON_BOOL || deprecated.type != BSON_BOOL)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "apiStrict and apiDeprecationErrors have to be booleans");
	if (bson_truth(&strict) && !(c->command->flags & COMMAND_VERSION_1))
		return call_fail(c, MONGO_API_STRICT,
				 "Provided apiStrict:true, but the command %s is not in API "
				 "Version 1. Information on supported commands and migrations in "
				 "API Version 1 can be found at "
				 "https://dochub.mongodb.org/core/manual-versioned-api",
				 c->command->name);
	c->is_strict = bson_truth(&strict);
	return STATUS_OK;
}

enum status
api_check_stage(struct call *c, struct str stage, struct str spec)
{
	struct bson_element e;
	struct bson_iter i;
	bool counts = str_eq(stage, STR("$collStats"));

	for (bson_iter_begin(&i, spec); counts && bson_iter_read(&i, &e);)
		counts = str_eq(e.name, STR("count"));
	if (!c->is_strict || counts)
		return STATUS_OK;
	return call_fail(c, MONGO_API_STRICT,
			 "stage %.*s is not allowed with 'apiStrict: true' in API Version 1",
			 STR_ARG(stage));
}
