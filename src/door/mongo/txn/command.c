#include "door/mongo/txn/command.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/words.h"
#include "bson/decimal.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"

enum {
	DB_NAME_BYTES = 63,
	NS_BYTES = 255, /* of a database's and a collection's name together */
};

/* Members that any command may have; those that say something here are read below. */
static const char *const generic[] = {
	"$db",
	"lsid",
	"$clusterTime",
	"$readPreference",
	"apiVersion",
	"apiStrict",
	"apiDeprecationErrors",
	"maxTimeMS",
	"comment",
	"readConcern",
	"writeConcern",
	"txnNumber",
	"autocommit",
	"startTransaction",
	"stmtId",
	"stmtIds",
	"$configServerState",
	"$configTime",
	"$topologyTime",
	"$client",
	"$audit",
	"$oplogQueryData",
	"databaseVersion",
	"shardVersion",
	"$replData",
	"$queryOptions",
	"clientOperationKey",
	"mayBypassWriteBlocking",
	"maxTimeMSOpOnly",
	"rawData",
};

static bool
command_has_alias(const struct command *command, struct str name)
{
	for (size_t i = 0; i < sizeof(command->aliases) / sizeof(command->aliases[0]); i++)
		if (command->aliases[i] && str_eq(name, str_from_cstr(command->aliases[i])))
			return true;
	return false;
}

const struct command *
mongo_command_find(struct str name)
{
	size_t first = 0, end = mongo_command_count;

	while (first < end) {
		size_t mid = first + (end - first) / 2;
		int order = str_cmp(name, str_from_cstr(mongo_commands[mid].name));

		if (order == 0)
			return &mongo_commands[mid];
		if (order < 0)
			end = mid;
		else
			first = mid + 1;
	}
	for (size_t i = 0; i < mongo_command_count; i++)
		if (command_has_alias(&mongo_commands[i], name))
			return &mongo_commands[i];
	return NULL;
}

/* ---- Members ---- */

static bool
arg_has_type(unsigned types, const struct bson_value *v)
{
	unsigned is = 0;

	if (bson_is_number(v))
		is = ARG_BOOL | ARG_INT | ARG_NUMBER;
	else if (v->type == BSON_BOOL)
		is = ARG_BOOL;
	else if (v->type == BSON_STRING)
		is = ARG_STRING;
	else if (v->type == BSON_DOCUMENT)
		is = ARG_OBJECT;
	else if (v->type == BSON_ARRAY)
		is = ARG_ARRAY | ARG_DOCUMENTS;
	else if (v->type == BSON_BINARY)
		is = ARG_BINARY;
	else if (v->type == BSON_TIMESTAMP)
		is = ARG_TIMESTAMP;
	types &= ~(unsigned)ARG_REQUIRED;
	return types == ARG_ANY || types & ARG_IGNORED || types & is;
}

/* As MongoDB writes it, whose brackets do not match. */
static const char *
arg_types_text(unsigned types)
{
	if (types & ARG_BOOL)
		return "types '[bool, long, int, decimal, double']";
	if (types & ARG_NUMBER)
		return types & ARG_STRING ? "types '[string, long, int, decimal, double']"
					  : "types '[long, int, decimal, double']";
	if (types & ARG_OBJECT && types & ARG_STRING)
		return "types '[string, object']";
	if (types & ARG_OBJECT && types & ARG_ARRAY)
		return "types '[array, object']";
	return types & ARG_INT         ? "type 'int'"
	       : types & ARG_STRING    ? "type 'string'"
	       : types & ARG_OBJECT    ? "type 'object'"
	       : types & ARG_BINARY    ? "type 'binData'"
	       : types & ARG_TIMESTAMP ? "type 'timestamp'"
				       : "type 'array'";
}

bool
command_is_generic(struct str name)
{
	return WORDS_HAVE(generic, name);
}

enum status
call_type_mismatch(struct call *c, const struct bson_value *v, const char *wanted,
		   const char *format, ...)
{
	char path[ERR_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return call_fail(c, MONGO_TYPE_MISMATCH,
			 "BSON field '%s' is the wrong type '%s', expected %s", path,
			 bson_type_name(v->type), wanted);
}

/* The place of a member in the command's list; -1: it is not there. */
static int
arg_find(const struct command *command, struct str name)
{
	for (int i = 0; command->args[i].name; i++)
		if (str_eq(name, str_from_cstr(command->args[i].name)))
			return i;
	return -1;
}

static enum status
arg_wrong_type(struct call *c, struct str name, const struct bson_value *v, unsigned types)
{
	return call_type_mismatch(c, v, arg_types_text(types), "%s.%.*s", c->command->name,
				  STR_ARG(name));
}

static enum status
arg_unknown(struct call *c, struct str name)
{
	if (c->command->flags & COMMAND_LENIENT)
		return STATUS_OK;
	return call_fail(c, MONGO_FIELD_UNKNOWN, "BSON field '%s.%.*s' is an unknown field.",
			 c->command->name, STR_ARG(name));
}

static enum status
arg_set(struct call *c, const struct bson_element *e)
{
	int at = arg_find(c->command, e->name);
	const struct arg *arg;

	if (at < 0)
		return arg_unknown(c, e->name);
	arg = &c->command->args[at];
	if (c->args[at].given)
		return call_fail(c, MONGO_FIELD_DUPLICATE,
				 "BSON field '%s.%.*s' is a duplicate field", c->command->name,
				 STR_ARG(e->name));
	if (e->value.type == BSON_NULL || e->value.type == BSON_UNDEFINED)
		return STATUS_OK;
	if (!arg_has_type(arg->types, &e->value))
		return arg_wrong_type(c, e->name, &e->value, arg->types);
	c->args[at] = (struct arg_value){ .given = true, .value = e->value };
	return STATUS_OK;
}

static enum status
args_read_sequences(struct call *c)
{
	for (size_t i = 0; i < c->msg->count; i++) {
		const struct wire_sequence *s = &c->msg->sequences[i];
		int at = arg_find(c->command, s->name);

		if (bson_find(c->body, s->name, NULL))
			return call_fail(c, MONGO_BODY_AND_SEQUENCE,
					 "Duplicate field between body and document sequence %.*s",
					 STR_ARG(s->name));
		if (at < 0)
			TRY(arg_unknown(c, s->name));
		else if (!(c->command->args[at].types & ARG_DOCUMENTS))
			return arg_wrong_type(c, s->name,
					      &(struct bson_value){ .type = BSON_ARRAY },
					      c->command->args[at].types);
		else
			c->args[at] = (struct arg_value){ .given = true, .sequence = s->docs };
	}
	return STATUS_OK;
}

/* ---- What many commands have ---- */

static bool
db_name_is_sound(struct str db)
{
	if (!db.len || db.len > DB_NAME_BYTES)
		return false;
	for (size_t i = 0; i < db.len; i++)
		if (!db.ptr[i] || strchr("/\\. \"$", db.ptr[i]))
			return false;
	return true;
}

static enum status
read_db(struct call *c, const struct bson_value *v)
{
	if (v->type != BSON_STRING)
		return arg_wrong_type(c, STR("$db"), v, ARG_STRING);
	/* Those who log in by a name from elsewhere say so by the name of a database. */
	if (!db_name_is_sound(bson_text(v)) && !str_eq(bson_text(v), STR("$external")))
		return call_fail(c, MONGO_INVALID_NAMESPACE, "Invalid database name: '%.*s'",
				 (int)(bson_text(v).len < 100 ? bson_text(v).len : 100),
				 bson_text(v).ptr);
	c->db = bson_text(v);
	return STATUS_OK;
}

static enum status
read_lsid(struct call *c, const struct bson_value *v)
{
	struct bson_value id;

	if (v->type != BSON_DOCUMENT)
		return arg_wrong_type(c, STR("lsid"), v, ARG_OBJECT);
	if (!bson_find(bson_text(v), STR("id"), &id) || id.type != BSON_BINARY ||
	    bson_text(&id).len != 16)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'lsid.id' is missing but a required field");
	c->lsid = bson_text(&id);
	return STATUS_OK;
}

static enum status
read_number(struct call *c, const struct bson_value *v)
{
	if (v->type != BSON_INT64 && v->type != BSON_INT32)
		return arg_wrong_type(c, STR("txnNumber"), v, ARG_INT);
	if (bson_integer(v) < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'txnNumber' value must be >= 0, actual value '%lld'",
				 (long long)bson_integer(v));
	c->has_number = true;
	c->number = bson_integer(v);
	return STATUS_OK;
}

/* Clients send the newest time that they know. Reads need no time that is told in this way. */
static enum status
check_cluster_time(struct call *c, const struct bson_value *v)
{
	struct bson_value time;

	if (v->type != BSON_DOCUMENT)
		return arg_wrong_type(c, STR("$clusterTime"), v, ARG_OBJECT);
	if (!bson_find(bson_text(v), STR("clusterTime"), &time))
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field '$clusterTime.clusterTime' is missing but a required "
				 "field");
	if (time.type != BSON_TIMESTAMP)
		return call_type_mismatch(c, &time, "type 'timestamp'", "$clusterTime.clusterTime");
	return STATUS_OK;
}

/*
 * What a write concern asks for makes no difference to what a command does, but one that makes no
 * sense is a mistake of the client. `w` is checked where it is obeyed (data_check_concern).
 */
static enum status
check_write_concern(struct call *c, const struct bson_value *v)
{
	struct bson_value j;

	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	if (v->type != BSON_DOCUMENT)
		return arg_wrong_type(c, STR("writeConcern"), v, ARG_OBJECT);
	if (bson_find(bson_text(v), STR("j"), &j) && j.type != BSON_BOOL && j.type != BSON_NULL &&
	    !bson_is_number(&j))
		return call_type_mismatch(c, &j, "types '[bool, long, int, decimal, double]'",
					  "writeConcern.j");
	return STATUS_OK;
}

/* Clients say false of the one, and true of the other, or nothing. */
static enum status
read_flag(struct call *c, const struct bson_element *e, bool wanted, bool *ret)
{
	if (e->value.type != BSON_BOOL)
		return arg_wrong_type(c, e->name, &e->value, ARG_BOOL);
	if (bson_truth(&e->value) != wanted)
		return call_fail(c, MONGO_INVALID_OPTIONS, "Specifying %.*s=%s is not allowed.",
				 STR_ARG(e->name), wanted ? "false" : "true");
	*ret = true;
	return STATUS_OK;
}

static enum status
read_max_time(struct call *c, const struct bson_value *v)
{
	int64_t ms;

	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	if (!bson_is_number(v))
		return arg_wrong_type(c, STR("maxTimeMS"), v, ARG_NUMBER);
	if (!bson_to_int64(v, &ms))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "maxTimeMS has to be a whole number of milliseconds");
	if (ms < 0 || ms > INT32_MAX)
		return call_fail(c, MONGO_BAD_VALUE,
				 "%lld value for maxTimeMS is out of range [0, %d]", (long long)ms,
				 INT32_MAX);
	c->max_ns = (uint64_t)ms * CLOCK_NS_PER_MS;
	return STATUS_OK;
}

/* What a request says of its session has to fit together. */
static enum status
check_session(struct call *c)
{
	if (c->has_number && !c->lsid.ptr)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Transaction number requires a session ID to also be specified");
	if (c->in_transaction && !c->has_number)
		return call_fail(
			c, MONGO_INVALID_OPTIONS,
			"'autocommit' field requires a transaction number to also be specified");
	if (c->starts && !c->in_transaction)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "'startTransaction' field requires 'autocommit' field to also be "
				 "specified");
	if (c->has_number && !c->in_transaction && !(c->command->flags & COMMAND_RETRIES))
		return call_fail(c, MONGO_NOT_RETRYABLE,
				 "txnNumber may only be provided for multi-document transactions "
				 "and retryable write commands. autocommit:false was not provided, "
				 "and %s is not a retryable write command.",
				 c->command->name);
	return STATUS_OK;
}

static bool
collection_name_is_sound(struct str db, struct str name)
{
	return name.len && name.ptr[0] != '.' && !memchr(name.ptr, '\0', name.len) &&
	       !memchr(name.ptr, '$', name.len) && db.len + 1 + name.len <= NS_BYTES;
}

enum status
call_check_ns(struct call *c, struct str ns)
{
	struct str name = ns;
	struct str db = str_cut(&name, '.');

	if (db_name_is_sound(db) && collection_name_is_sound(db, name) && ns.len <= DATA_NS_BYTES)
		return STATUS_OK;
	return call_fail(c, MONGO_INVALID_NAMESPACE, "Invalid namespace specified '%.*s'",
			 (int)(ns.len < NS_BYTES ? ns.len : NS_BYTES), ns.ptr);
}

enum status
call_check_rights(struct call *c, struct str db, unsigned needs)
{
	if (rights_on(&c->client->rights, db) & needs)
		return STATUS_OK;
	return call_fail(c, MONGO_UNAUTHORIZED, "not authorized on %.*s to execute command %s",
			 STR_ARG(db), c->command->name);
}

enum status
call_read_collection(struct call *c)
{
	struct str name;

	if (c->first.type != BSON_STRING)
		return call_fail(c, MONGO_INVALID_NAMESPACE, "collection name has invalid type %s",
				 bson_type_name(c->first.type));
	name = bson_text(&c->first);
	if (!collection_name_is_sound(c->db, name))
		return call_fail(c, MONGO_INVALID_NAMESPACE,
				 "Invalid namespace specified '%.*s.%.*s'", STR_ARG(c->db),
				 (int)(name.len < NS_BYTES ? name.len : NS_BYTES), name.ptr);
	c->collection = name;
	return STATUS_OK;
}

enum status
call_read_args(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;
	bool first = true;

	for (bson_iter_begin(&i, c->body); bson_iter_read(&i, &e); first = false) {
		if (first)
			c->first = e.value;
		else if ((e.value.type == BSON_NULL || e.value.type == BSON_UNDEFINED) &&
			 command_is_generic(e.name) && !str_eq(e.name, STR("$db")))
			c->has_more = true; /* what is read below is as if it were not there */
		else if (str_eq(e.name, STR("$db")))
			TRY(read_db(c, &e.value));
		else if (str_eq(e.name, STR("lsid")))
			TRY(read_lsid(c, &e.value));
		else if (str_eq(e.name, STR("txnNumber")))
			TRY(read_number(c, &e.value));
		else if (str_eq(e.name, STR("autocommit")))
			TRY(read_flag(c, &e, false, &c->in_transaction));
		else if (str_eq(e.name, STR("startTransaction")))
			TRY(read_flag(c, &e, true, &c->starts));
		else if (str_eq(e.name, STR("maxTimeMS")))
			TRY(read_max_time(c, &e.value));
		else if (str_eq(e.name, STR("$clusterTime")))
			TRY(check_cluster_time(c, &e.value));
		else if (str_eq(e.name, STR("writeConcern")))
			TRY(check_write_concern(c, &e.value));
		else if (arg_find(c->command, e.name) >= 0 || !command_is_generic(e.name))
			TRY(arg_set(c, &e));
		else
			c->has_more = true;
	}
	if (!c->db.ptr)
		return call_fail(c, MONGO_NO_DB, "OP_MSG requests require a $db argument");
	TRY(args_read_sequences(c));
	TRY(check_session(c));
	for (size_t k = 0; c->command->args[k].name; k++)
		if (c->command->args[k].types & ARG_REQUIRED && !c->args[k].given)
			return call_fail(c, MONGO_FIELD_MISSING,
					 "BSON field '%s.%s' is missing but a required field",
					 c->command->name, c->command->args[k].name);
	return c->command->flags & COMMAND_COLLECTION ? call_read_collection(c) : STATUS_OK;
}

/* ---- For handlers ---- */

uint64_t
call_time_left(const struct call *c)
{
	uint64_t used = clock_mono_ns() - c->began_ns;

	if (!c->max_ns)
		return 0;
	return used < c->max_ns ? c->max_ns - used : 1;
}

struct call_mark
call_mark(const struct call *c)
{
	return (struct call_mark){ c->reply->out->len, c->reply->depth };
}

void
call_go_back(struct call *c, struct call_mark mark)
{
	c->reply->out->len = mark.len;
	c->reply->depth = mark.depth;
	c->reply->too_deep = 0;
	c->code = 0;
	c->err = (struct err){ 0 };
}

bool
call_runs_again(struct call *c, struct call_mark mark, unsigned *runs)
{
	if (c->code != MONGO_OTHER_COLLATION)
		return false;
	if (++*runs < COMMAND_COLLATIONS) {
		call_go_back(c, mark);
		return true;
	}
	(void)call_fail(c, MONGO_QUERY_PLAN_KILLED,
			"the collection was dropped and created again with another collation");
	return false;
}

int64_t
call_whole_number(const struct bson_value *v)
{
	int64_t n;
	double d;

	if (bson_to_int64(v, &n))
		return n;
	/* Doubles are cut. */
	if (v->type == BSON_DECIMAL &&
	    bson_decimal_to_int64(
		    bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_NEAREST, NULL), &n))
		return n;
	d = bson_to_double(v);
	if (d >= 0x1p63)
		return INT64_MAX;
	return d <= -0x1p63 ? INT64_MIN : d > -0x1p63 ? (int64_t)d : 0; /* NaN is 0 */
}

int64_t
call_i64(const struct call *c, size_t i, int64_t otherwise)
{
	const struct bson_value *v = &c->args[i].value;

	if (!c->args[i].given)
		return otherwise;
	return v->type == BSON_BOOL ? bson_truth(v) : call_whole_number(v);
}

bool
call_bool(const struct call *c, size_t i, bool otherwise)
{
	return c->args[i].given ? bson_is_true(&c->args[i].value) : otherwise;
}

struct str
call_text(const struct call *c, size_t i)
{
	return c->args[i].given ? bson_text(&c->args[i].value) : STR("");
}
