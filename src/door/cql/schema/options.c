#include "door/cql/schema/options.h"

#include "door/cql/schema/options_int.h"

#include <errno.h>
#include <stdlib.h>

#define STRATEGY_PREFIX "org.apache.cassandra.locator."

/* How many seconds of the table's past can be read. */
#define OPTION_HISTORY "history_seconds"
/* Whether the timestamps that drivers send beside statements order its writes. */
#define OPTION_TIMESTAMPS "client_timestamps"

enum {
	NUMBER_BYTES = 64, /* of a number's text */
	TTL_MOST_S = 20 * 365 * 24 * 60 * 60,
};

/* In the order of their names. `preset` is a text, a number, or a literal of a map. */
static const struct {
	const char *name;
	enum options_kind kind;
	const char *preset;
	enum {
		OF_CASSANDRA,
		REFUSED, /* drivers ask for it, but nobody may set it */
		OWN,     /* of YCQL or frond */
	} what;
} table_options[OPTIONS_TABLE_COUNT] = {
	{ "additional_write_policy", OPTIONS_TEXT, "99p", OF_CASSANDRA },
	{ "bloom_filter_fp_chance", OPTIONS_DOUBLE, "0.01", OF_CASSANDRA },
	{ "caching", OPTIONS_MAP, "{'keys': 'ALL', 'rows_per_partition': 'NONE'}", OF_CASSANDRA },
	{ OPTION_TIMESTAMPS, OPTIONS_BOOL, "false", OWN },
	{ "comment", OPTIONS_TEXT, "", OF_CASSANDRA },
	{ "compaction", OPTIONS_MAP,
	  "{'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', "
	  "'max_threshold': '32', 'min_threshold': '4'}",
	  OF_CASSANDRA },
	{ "compression", OPTIONS_MAP,
	  "{'chunk_length_in_kb': '16', 'class': 'org.apache.cassandra.io.compress."
	  "LZ4Compressor'}",
	  OF_CASSANDRA },
	{ "crc_check_chance", OPTIONS_DOUBLE, "1.0", OF_CASSANDRA },
	{ "dclocal_read_repair_chance", OPTIONS_DOUBLE, "0.0", OF_CASSANDRA },
	{ "default_time_to_live", OPTIONS_INT, "0", OF_CASSANDRA },
	{ "extensions", OPTIONS_MAP, "{}", REFUSED },
	{ "gc_grace_seconds", OPTIONS_INT, "864000", OF_CASSANDRA },
	{ OPTION_HISTORY, OPTIONS_INT, "0", OWN },
	{ "max_index_interval", OPTIONS_INT, "2048", OF_CASSANDRA },
	{ "memtable_flush_period_in_ms", OPTIONS_INT, "0", OF_CASSANDRA },
	{ "min_index_interval", OPTIONS_INT, "128", OF_CASSANDRA },
	{ TABLE_PROPERTY_PACKED, OPTIONS_BOOL, "false", OWN },
	{ "read_repair", OPTIONS_TEXT, "BLOCKING", OF_CASSANDRA },
	{ "read_repair_chance", OPTIONS_DOUBLE, "0.0", OF_CASSANDRA },
	{ "speculative_retry", OPTIONS_TEXT, "99p", OF_CASSANDRA },
	{ "transactions", OPTIONS_MAP, "{}", OWN },
};

const char *
options_table_name(size_t i)
{
	return table_options[i].name;
}

static bool
packs_by_default(const struct schema_table *t)
{
	return t->schema && !t->counters && !t->compact && !options_honour_timestamps(t);
}

bool
options_table_is_told(const struct schema_table *t, const struct options_table *options, size_t i)
{
	const struct options_value *v = &options->values[i];

	if (table_options[i].what != OWN)
		return true;
	if (strcmp(table_options[i].name, TABLE_PROPERTY_PACKED) == 0)
		return (v->n != 0) != packs_by_default(t);
	return v->n || v->count;
}

/* ---- Failing ---- */

static enum status
fail_text(struct cql *q, enum cql_code code, const char *before, struct str name, const char *after)
{
	q->code = code;
	return err_set(q->err, STATUS_INVALID, "%s%.*s%s", before,
		       (int)(name.len < 200 ? name.len : 200), name.ptr, after);
}

/* ---- What holds ---- */

static enum status
value_read(struct cql *q, enum options_kind kind, struct str text, struct options_value *ret)
{
	char number[NUMBER_BYTES];

	*ret = (struct options_value){ .kind = kind, .text = text };
	switch (kind) {
	case OPTIONS_INT:
		(void)str_to_i64(text, &ret->n);
		break;
	case OPTIONS_DOUBLE:
		if (text.len < sizeof(number)) {
			memcpy(number, text.ptr, text.len);
			number[text.len] = '\0';
			ret->d = strtod(number, NULL);
		}
		break;
	case OPTIONS_BOOL:
		ret->n = str_eq_nocase(text, STR("true"));
		break;
	case OPTIONS_MAP:
		return schema_map_read(q, text, &ret->pairs, &ret->count);
	case OPTIONS_TEXT:
		break;
	}
	return STATUS_OK;
}

static struct str
pair_find(const struct schema_pair *pairs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(pairs[i].name, str_from_cstr(name)))
			return pairs[i].value;
	return (struct str){ 0 };
}

enum status
options_of_keyspace(struct cql *q, const struct table_keyspace *stored,
		    struct options_keyspace *ret)
{
	struct str replication = schema_property(stored->properties, stored->property_count,
						 STR("replication"));
	struct str durable = schema_property(stored->properties, stored->property_count,
					     STR("durable_writes"));

	*ret = (struct options_keyspace){ .durable_writes = !str_eq(durable, STR("false")) };
	return schema_map_read(q, replication, &ret->replication, &ret->replication_count);
}

enum status
options_of_table(struct cql *q, const struct schema_table *t, struct options_table *ret)
{
	for (size_t i = 0; i < OPTIONS_TABLE_COUNT; i++) {
		struct str text = { 0 };

		if (t->schema)
			text = table_property_of(t->schema, str_from_cstr(table_options[i].name));
		if (!text.ptr)
			text = str_from_cstr(table_options[i].preset);
		TRY(value_read(q, table_options[i].kind, text, &ret->values[i]));
		/* The database knows it; others than this door set it, too. */
		if (t->db && str_eq(str_from_cstr(table_options[i].name), STR(OPTION_HISTORY)))
			ret->values[i].n = (int64_t)timed_history_seconds(t->db);
	}
	return STATUS_OK;
}

enum status
options_forbid_transactions(struct cql *q, const struct schema_table *t, bool *ret)
{
	struct schema_pair *pairs;
	struct str said = { 0 };
	size_t count;

	if (t->schema)
		said = table_property_of(t->schema, STR("transactions"));
	TRY(schema_map_read(q, said, &pairs, &count));
	*ret = str_eq_nocase(pair_find(pairs, count, "enabled"), STR("false"));
	return STATUS_OK;
}

bool
options_honour_timestamps(const struct schema_table *t)
{
	return t->schema &&
	       str_eq(table_property_of(t->schema, STR(OPTION_TIMESTAMPS)), STR("true"));
}

/* ---- What WITH says ---- */

static enum status
map_text(struct cql *q, const struct schema_pair *pairs, size_t count, struct str *ret)
{
	AUTO(buf_release) struct buf out = cql_buf(q, TABLE_PROPERTY_BYTES);

	schema_map_print(&out, pairs, count);
	return buf_copy(&out, q->arena, ret);
}

static bool
pair_has(const struct schema_pair *pairs, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(pairs[i].name, name))
			return true;
	return false;
}

static enum status
map_pairs(struct cql *q, const struct cql_property *p, struct schema_pair **ret)
{
	struct schema_pair *pairs = arena_alloc(q->arena, (p->count + 1) * sizeof(*pairs));

	if (!pairs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->count; i++) {
		if (pair_has(pairs, i, p->entries[i].name))
			return fail_text(q, CQL_CODE_SYNTAX, "Multiple definition for property '",
					 p->entries[i].name, "'");
		pairs[i] = (struct schema_pair){ p->entries[i].name, p->entries[i].value };
	}
	*ret = pairs;
	return STATUS_OK;
}

static bool
is_replicas(struct str text)
{
	struct str whole = text;
	int64_t n;

	/* "3/1" has transient replicas. */
	whole = str_cut(&text, '/');
	return str_to_i64(whole, &n) && n >= 0;
}

/* The class of a replication strategy becomes its whole name. */
static enum status
check_replication(struct cql *q, bool creates, struct schema_pair *pairs, size_t count)
{
	struct str class = pair_find(pairs, count, "class");
	struct str prefix = STR(STRATEGY_PREFIX), name = class;
	bool simple, network;

	if (!class.ptr)
		return fail_text(q, CQL_CODE_CONFIG, "", STR("Missing replication strategy class"),
				 "");
	if (str_starts_with(name, prefix))
		name = str_skip(name, prefix.len);
	simple = str_eq(name, STR("SimpleStrategy"));
	network = str_eq(name, STR("NetworkTopologyStrategy"));
	if (!simple && !network && !str_eq(name, STR("LocalStrategy")))
		return fail_text(q, CQL_CODE_CONFIG,
				 "Unable to find replication strategy class '" STRATEGY_PREFIX,
				 name, "'");
	if (!creates && network && count == 1)
		return fail_text(q, CQL_CODE_CONFIG, "",
				 STR("Configuration for at least one datacenter must be present"),
				 "");
	if (!creates && simple && count == 1)
		return fail_text(
			q, CQL_CODE_CONFIG, "",
			STR("SimpleStrategy requires a replication_factor strategy option."), "");
	for (size_t i = 0; i < count; i++) {
		if (str_eq(pairs[i].name, STR("class"))) {
			pairs[i].value = arena_printf(q->arena, STRATEGY_PREFIX "%.*s",
						      STR_ARG(name));
			if (!pairs[i].value.ptr)
				return STATUS_LIMIT;
			continue;
		}
		if (simple && !str_eq(pairs[i].name, STR("replication_factor")))
			return fail_text(q, CQL_CODE_CONFIG, "Unrecognized strategy option {",
					 pairs[i].name, "} passed to SimpleStrategy");
		if (!is_replicas(pairs[i].value))
			return fail_text(q, CQL_CODE_CONFIG,
					 "Replication factor must be numeric and non-negative, "
					 "found '",
					 pairs[i].value, "'");
	}
	return STATUS_OK;
}

static enum status
check_bool(struct cql *q, const struct cql_property *p, struct str *ret)
{
	if (!p->is_map && (str_eq_nocase(p->value, STR("true")) || str_eq(p->value, STR("1"))))
		*ret = STR("true");
	else if (!p->is_map &&
		 (str_eq_nocase(p->value, STR("false")) || str_eq(p->value, STR("0"))))
		*ret = STR("false");
	else
		return fail_text(q, CQL_CODE_SYNTAX, "Invalid boolean value for '", p->name, "'");
	return STATUS_OK;
}

enum status
options_check_keyspace(struct cql *q, const struct cql_properties *with, bool creates,
		       struct table_property **ret, size_t *ret_count)
{
	struct table_property *properties = arena_alloc(q->arena,
							(with->count + 1) * sizeof(*properties));
	bool replicates = false;
	size_t count = 0;

	if (!properties)
		return STATUS_LIMIT;
	for (size_t i = 0; i < with->count; i++) {
		const struct cql_property *p = &with->list[i];
		struct table_property *to = &properties[count++];

		to->name = p->name;
		if (str_eq(p->name, STR("durable_writes"))) {
			TRY(check_bool(q, p, &to->value));
		} else if (str_eq(p->name, STR("replication"))) {
			struct schema_pair *pairs;

			if (!p->is_map)
				return fail_text(q, CQL_CODE_SYNTAX, "Invalid value for property '",
						 p->name, "'. It should be a map.");
			TRY(map_pairs(q, p, &pairs));
			TRY(check_replication(q, creates, pairs, p->count));
			TRY(map_text(q, pairs, p->count, &to->value));
			replicates = true;
		} else {
			return fail_text(q, CQL_CODE_SYNTAX, "Unknown property '", p->name, "'");
		}
	}
	if (creates && !replicates)
		return fail_text(q, CQL_CODE_CONFIG, "",
				 STR("Missing mandatory option 'replication'"), "");
	*ret = properties;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- Of tables ---- */

static enum status
check_number(struct cql *q, const struct cql_property *p, enum options_kind kind)
{
	char number[NUMBER_BYTES], *end;
	int64_t n;

	if (kind == OPTIONS_INT) {
		if (!str_to_i64(p->value, &n) || n > INT32_MAX || n < INT32_MIN)
			return fail_text(q, CQL_CODE_SYNTAX, "Invalid integer value for '", p->name,
					 "'");
		if (n < 0) {
			q->code = CQL_CODE_CONFIG;
			return err_set(q->err, STATUS_INVALID,
				       "%.*s must be greater than or equal to 0 (got %lld)",
				       STR_ARG(p->name), (long long)n);
		}
		return STATUS_OK;
	}
	if (p->value.len && p->value.len < sizeof(number)) {
		memcpy(number, p->value.ptr, p->value.len);
		number[p->value.len] = '\0';
		(void)strtod(number, &end);
		if (!*end)
			return STATUS_OK;
	}
	return fail_text(q, CQL_CODE_SYNTAX, "Invalid double value for '", p->name, "'");
}

/* The property's text as it is stored. */
static enum status
check_option(struct cql *q, const struct cql_property *p, enum options_kind kind, struct str *ret)
{
	struct schema_pair *pairs;
	size_t count;

	*ret = p->value;
	if (kind == OPTIONS_MAP) {
		if (!p->is_map)
			return fail_text(q, CQL_CODE_SYNTAX, "Invalid value for property '",
					 p->name, "'. It should be a map.");
		TRY(map_pairs(q, p, &pairs));
		count = p->count;
		if (str_eq(p->name, STR("compression")))
			TRY(options_compression(q, pairs, &count));
		if (str_eq(p->name, STR("compaction")))
			TRY(options_compaction(q, &pairs, &count));
		return map_text(q, pairs, count, ret);
	}
	if (p->is_map)
		return fail_text(q, CQL_CODE_SYNTAX, "Invalid value for property '", p->name,
				 "'. It should be a string.");
	if (kind == OPTIONS_BOOL)
		return check_bool(q, p, ret);
	return kind == OPTIONS_TEXT ? STATUS_OK : check_number(q, p, kind);
}

static enum status
check_ttl(struct cql *q, const struct cql_property *p, struct options_said *ret)
{
	int64_t n;

	if (!str_to_i64(p->value, &n) || n > TTL_MOST_S) {
		q->code = CQL_CODE_CONFIG;
		return err_set(q->err, STATUS_INVALID,
			       "default_time_to_live must be less than or equal to %d", TTL_MOST_S);
	}
	ret->sets_ttl = true;
	ret->ttl_s = (uint64_t)n;
	return STATUS_OK;
}

static enum status
check_history(struct cql *q, const struct cql_property *p, struct options_said *ret)
{
	int64_t n;

	if (!str_to_i64(p->value, &n) || n > TIMED_HISTORY_SECONDS) {
		q->code = CQL_CODE_CONFIG;
		return err_set(q->err, STATUS_INVALID,
			       OPTION_HISTORY " must be less than or equal to %d "
					      "(TIMED_HISTORY_SECONDS)",
			       TIMED_HISTORY_SECONDS);
	}
	ret->sets_history = true;
	ret->history_s = (uint64_t)n;
	return STATUS_OK;
}

/* What one property says. */
static enum status
said_add(struct cql *q, const struct cql_property *p, struct options_said *ret)
{
	struct table_property *to = &ret->properties[ret->count];
	size_t at = 0;

	/* The id of a table is the server's; what tools dump and load names it, too. */
	if (str_eq(p->name, STR("id")))
		return STATUS_OK;
	while (at < OPTIONS_TABLE_COUNT && !str_eq(p->name, str_from_cstr(table_options[at].name)))
		at++;
	if (at == OPTIONS_TABLE_COUNT || table_options[at].what == REFUSED)
		return fail_text(q, CQL_CODE_SYNTAX, "Unknown property '", p->name, "'");
	to->name = p->name;
	TRY(check_option(q, p, table_options[at].kind, &to->value));
	if (str_eq(p->name, STR(OPTION_HISTORY)))
		return check_history(q, p, ret);
	ret->count++;
	return str_eq(p->name, STR("default_time_to_live")) ? check_ttl(q, p, ret) : STATUS_OK;
}

enum status
options_check_table(struct cql *q, const struct cql_properties *with, struct options_said *ret)
{
	/* One more is the caller's to add. */
	*ret = (struct options_said){
		.properties = arena_alloc(q->arena, (with->count + 1) * sizeof(*ret->properties))
	};
	if (!ret->properties)
		return STATUS_LIMIT;
	for (size_t i = 0; i < with->count; i++)
		TRY(said_add(q, &with->list[i], ret));
	return STATUS_OK;
}

void
options_set_defaults(struct options_said *said)
{
	for (size_t i = 0; i < said->count; i++) {
		const struct table_property *p = &said->properties[i];

		if (str_eq(p->name, STR(TABLE_PROPERTY_PACKED)) ||
		    (str_eq(p->name, STR(OPTION_TIMESTAMPS)) && str_eq(p->value, STR("true"))))
			return;
	}
	said->properties[said->count++] = (struct table_property){ STR(TABLE_PROPERTY_PACKED),
								   STR("true") };
}
