/*
 * What administrators of MongoDB's servers send, besides what tells figures. Much of it is about
 * things that there are none of here: locks, plans that are kept, log files.
 */
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/mongo_int.h"

#define ARGS_FSYNC(ARG)                                                                            \
	ARG(FSYNC_LOCK, "lock", ARG_BOOL)                                                          \
	ARG(FSYNC_ASYNC, "async", ARG_BOOL)                                                        \
	ARG(FSYNC_TIMEOUT, "fsyncLockAcquisitionTimeoutMillis", ARG_NUMBER)
ARGS_DEFINE(args_fsync, ARGS_FSYNC);

#define ARGS_PROFILE(ARG)                                                                          \
	ARG(PROFILE_SLOW, "slowms", ARG_NUMBER)                                                    \
	ARG(PROFILE_RATE, "sampleRate", ARG_NUMBER)                                                \
	ARG(PROFILE_FILTER, "filter", ARG_OBJECT | ARG_STRING)
ARGS_DEFINE(args_profile, ARGS_PROFILE);

#define ARGS_FEATURE_VERSION(ARG) ARG(VERSION_CONFIRM, "confirm", ARG_BOOL)
ARGS_DEFINE(args_feature_version, ARGS_FEATURE_VERSION);

#define ARGS_PLAN_CACHE(ARG)                                                                       \
	ARG(FILTER_MEMBERS_QUERY, "query", ARG_OBJECT)                                             \
	ARG(FILTER_MEMBERS_SORT, "sort", ARG_OBJECT)                                               \
	ARG(FILTER_MEMBERS_PROJECTION, "projection", ARG_OBJECT)                                   \
	ARG(FILTER_MEMBERS_COLLATION, "collation", ARG_OBJECT)
ARGS_DEFINE(args_plan_cache, ARGS_PLAN_CACHE);

/* Whatever was acknowledged is on disk. */
enum status
mongo_run_fsync(struct call *c)
{
	if (call_bool(c, FSYNC_LOCK, false))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "fsync cannot lock: there is no way to keep writers out. `frond "
				 "backup` copies a store that is written to");
	bson_put_int32(c->reply, STR("numFiles"), 1);
	return STATUS_OK;
}

enum status
mongo_run_fsync_unlock(struct call *c)
{
	return call_fail(c, MONGO_ILLEGAL_OPERATION, "fsyncUnlock called when not locked");
}

/* ---- profile ---- */

static enum status
check_level(struct call *c, int64_t *ret)
{
	if (!bson_is_number(&c->first))
		return call_type_mismatch(c, &c->first, "type 'int'", "profile.profile");
	if (!bson_to_int64(&c->first, ret) || *ret < -1 || *ret > 2)
		return call_fail(c, MONGO_BAD_VALUE,
				 "'profile' level must be in the range [0, 2], or -1 to ask");
	if (*ret > 0)
		return call_fail(
			c, MONGO_NOT_IMPLEMENTED,
			"there is no profiler: commands slower than slowms are lines of "
			"the log (event=slow_operation) at level 0, which is the only one");
	return STATUS_OK;
}

/*
 * Of the profiler there is only the level 0: slow commands are logged, of all databases, as long as
 * the process lives.
 */
enum status
mongo_run_profile(struct call *c)
{
	int64_t level = 0, slow_ms = call_i64(c, PROFILE_SLOW, -1);
	uint64_t was;

	TRY(check_level(c, &level));
	if (call_has(c, PROFILE_FILTER))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "profile has no filter");
	if (call_has(c, PROFILE_RATE) && bson_to_double(&c->args[PROFILE_RATE].value) != 1)
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "sampleRate has to be 1: every slow command is counted");
	if (call_has(c, PROFILE_SLOW) && (slow_ms < 0 || slow_ms > INT32_MAX))
		return call_fail(c, MONGO_BAD_VALUE, "slowms has to be a number from 0 to %d",
				 INT32_MAX);
	was = atomic_load(&c->mongo->slow_ms);
	if (level == 0 && slow_ms >= 0)
		atomic_store(&c->mongo->slow_ms, (uint64_t)slow_ms);
	bson_put_int32(c->reply, STR("was"), 0);
	bson_put_int32(c->reply, STR("slowms"), (int32_t)was);
	bson_put_double(c->reply, STR("sampleRate"), 1);
	return STATUS_OK;
}

/* ---- What there is none of ---- */

enum status
mongo_run_lock_info(struct call *c)
{
	bson_begin_array(c->reply, STR("lockInfo"));
	bson_end(c->reply);
	return STATUS_OK;
}

/* Each query is planned anew: no plan is kept that could be forgotten. */
enum status
mongo_run_plan_cache_clear(struct call *c)
{
	if (!call_has(c, FILTER_MEMBERS_QUERY) &&
	    (call_has(c, FILTER_MEMBERS_SORT) || call_has(c, FILTER_MEMBERS_PROJECTION) ||
	     call_has(c, FILTER_MEMBERS_COLLATION)))
		return call_fail(c, MONGO_BAD_VALUE, "sort or projection provided without query");
	return STATUS_OK;
}

enum status
mongo_run_plan_cache_list_filters(struct call *c)
{
	bson_begin_array(c->reply, STR("filters"));
	bson_end(c->reply);
	return STATUS_OK;
}

enum status
mongo_run_not_there(struct call *c)
{
	return call_fail(c, MONGO_NOT_IMPLEMENTED, "%s is not there: %s", c->command->name,
			 c->command->help);
}

/* ---- Versions ---- */

/* There is one that a server can be of: asking for it changes nothing. */
enum status
mongo_run_set_feature_version(struct call *c)
{
	if (c->first.type != BSON_STRING)
		return call_type_mismatch(
			c, &c->first, "type 'string'",
			"setFeatureCompatibilityVersion.setFeatureCompatibilityVersion");
	if (!str_eq(bson_text(&c->first), STR(MONGO_FEATURE_VERSION)))
		return call_fail(c, MONGO_BAD_VALUE,
				 "Invalid feature compatibility version value; expected "
				 "'" MONGO_FEATURE_VERSION "'");
	if (!call_bool(c, VERSION_CONFIRM, false))
		return call_fail(c, MONGO_CONFIRM_VERSION,
				 "setFeatureCompatibilityVersion needs 'confirm: true'");
	return STATUS_OK;
}

/* ---- Parameters of a cluster ---- */

/* Appends nothing: there are none. Fails for a name. */
static enum status
refuse_cluster_parameter(struct call *c, const struct bson_value *name)
{
	if (name->type != BSON_STRING)
		return call_type_mismatch(c, name, "type 'string'", "%s.%s", c->command->name,
					  c->command->name);
	return call_fail(c, MONGO_NO_SUCH_KEY, "Unknown server parameter: %.*s",
			 (int)(bson_text(name).len < 100 ? bson_text(name).len : 100),
			 bson_text(name).ptr);
}

enum status
mongo_run_get_cluster_parameter(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;

	if (c->first.type == BSON_ARRAY) {
		bson_iter_begin(&i, bson_text(&c->first));
		if (!bson_iter_read(&i, &e))
			return call_fail(c, MONGO_BAD_VALUE,
					 "Must supply at least one cluster server parameter name "
					 "to getClusterParameter");
		return refuse_cluster_parameter(c, &e.value);
	}
	if (c->first.type != BSON_STRING || !str_eq(bson_text(&c->first), STR("*")))
		return refuse_cluster_parameter(c, &c->first);
	bson_begin_array(c->reply, STR("clusterParameters"));
	bson_end(c->reply);
	return STATUS_OK;
}

enum status
mongo_run_set_cluster_parameter(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;

	if (c->first.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &c->first, "type 'object'",
					  "setClusterParameter.setClusterParameter");
	bson_iter_begin(&i, bson_text(&c->first));
	if (!bson_iter_read(&i, &e))
		return call_fail(c, MONGO_BAD_VALUE,
				 "setClusterParameter takes the name of a parameter");
	return refuse_cluster_parameter(
		c, &(struct bson_value){ .type = BSON_STRING, .as_text = e.name });
}
