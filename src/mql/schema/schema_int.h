/* A compiled schema: compile.c makes it, run.c runs it. */
#ifndef FROND_MQL_SCHEMA_INT_H
#define FROND_MQL_SCHEMA_INT_H

#include "mql/mql_int.h"
#include "mql/regex.h"
#include "mql/schema/schema.h"
#include "mql/value_set.h"

enum mql_rule_op {
	MQL_RULE_TYPE,
	MQL_RULE_ENUM,
	MQL_RULE_MINIMUM,
	MQL_RULE_MAXIMUM,
	MQL_RULE_MULTIPLE_OF,
	MQL_RULE_MIN_LENGTH,
	MQL_RULE_MAX_LENGTH,
	MQL_RULE_PATTERN,
	MQL_RULE_MIN_ITEMS,
	MQL_RULE_MAX_ITEMS,
	MQL_RULE_UNIQUE_ITEMS,
	MQL_RULE_ITEMS,
	MQL_RULE_MIN_PROPERTIES,
	MQL_RULE_MAX_PROPERTIES,
	MQL_RULE_REQUIRED,
	MQL_RULE_PROPERTIES, /* with patternProperties and additionalProperties */
	MQL_RULE_DEPENDENCIES,
	MQL_RULE_ALL_OF,
	MQL_RULE_ANY_OF,
	MQL_RULE_ONE_OF,
	MQL_RULE_NOT,
};

/* A set of types: a bit a type from 0 to 31. */
struct mql_types {
	uint32_t low;
	bool min, max;
};

/* A schema with what it is for, in a list. */
struct mql_schema_item {
	struct str name;           /* of a property, a pattern's text, or a dependency */
	struct mql_schema *schema; /* NULL: of a dependency on the presence of `value`'s names */
	struct mql_regex *regex;   /* of a pattern */
	struct bson_value value;
	struct mql_schema_item *next;
};

/* What may be where no other schema says anything: all, nothing, or what fulfils a schema. */
struct mql_schema_rest {
	bool forbidden;
	struct mql_schema *schema;
};

struct mql_rule {
	enum mql_rule_op op;
	struct mql_rule *next;
	struct bson_element keyword; /* as it was written; of several the first */
	union {
		struct mql_types types;
		struct {
			struct bson_value bound;
			bool exclusive;
		};
		int64_t count;
		struct mql_value_set values; /* of an enum */
		struct mql_regex *regex;
		struct {
			struct mql_schema *every; /* one schema for all items */
			struct mql_schema_item *tuple;
			struct mql_schema_rest more;
		} items;
		struct {
			const struct mql_schema_item **named; /* in the order of their names */
			size_t named_count;
			struct mql_schema_item *patterns;
			struct mql_schema_rest others;
		} properties;
		struct mql_schema_item *list;
	};
};

struct mql_schema {
	struct mql_rule *rules;
	struct str title, description; /* NULL where there is none */
};

#endif
