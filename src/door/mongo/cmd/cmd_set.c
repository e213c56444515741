/* What the replica set is, of which this process is the only member. */
#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"

enum {
	SET_TERM = 1,
	SET_VERSION = 1,
	STATE_PRIMARY = 1,
};

static enum status
check_set(struct call *c)
{
	if (c->mongo->set)
		return STATUS_OK;
	return call_fail(c, MONGO_NO_REPLICATION, "not running with --replSet");
}

static void
put_time(struct call *c, struct str name)
{
	bson_begin_document(c->reply, name);
	bson_put_timestamp(c->reply, STR("ts"), time_of_version(time_now(c)));
	bson_put_int64(c->reply, STR("t"), SET_TERM);
	bson_end(c->reply);
}

static void
put_member(struct call *c, int64_t now_ms)
{
	uint64_t up_ms = (clock_mono_ns() - c->mongo->started_ns) / CLOCK_NS_PER_MS;

	bson_begin_document(c->reply, STR(""));
	bson_put_int32(c->reply, STR("_id"), 0);
	bson_put_string(c->reply, STR("name"), str_from_cstr(c->mongo->host));
	bson_put_double(c->reply, STR("health"), 1);
	bson_put_int32(c->reply, STR("state"), STATE_PRIMARY);
	bson_put_string(c->reply, STR("stateStr"), STR("PRIMARY"));
	bson_put_int32(c->reply, STR("uptime"), (int32_t)(up_ms / 1000));
	put_time(c, STR("optime"));
	bson_put_date(c->reply, STR("optimeDate"), now_ms / 1000 * 1000);
	bson_put_date(c->reply, STR("electionDate"), (int64_t)c->mongo->started_ms);
	bson_put_string(c->reply, STR("syncSourceHost"), STR(""));
	bson_put_int32(c->reply, STR("syncSourceId"), -1);
	bson_put_string(c->reply, STR("infoMessage"), STR(""));
	bson_put_int32(c->reply, STR("configVersion"), SET_VERSION);
	bson_put_int32(c->reply, STR("configTerm"), SET_TERM);
	bson_put_bool(c->reply, STR("self"), true);
	bson_put_string(c->reply, STR("lastHeartbeatMessage"), STR(""));
	bson_end(c->reply);
}

enum status
mongo_run_set_status(struct call *c)
{
	static const char *const ones[] = { "majorityVoteCount", "writeMajorityCount",
					    "votingMembersCount", "writableVotingMembersCount" };
	static const char *const times[] = { "lastCommittedOpTime", "readConcernMajorityOpTime",
					     "appliedOpTime", "durableOpTime" };
	int64_t now_ms = (int64_t)clock_wall_ms();

	TRY(check_set(c));
	bson_put_string(c->reply, STR("set"), str_from_cstr(c->mongo->set));
	bson_put_date(c->reply, STR("date"), now_ms);
	bson_put_int32(c->reply, STR("myState"), STATE_PRIMARY);
	bson_put_int64(c->reply, STR("term"), SET_TERM);
	bson_put_string(c->reply, STR("syncSourceHost"), STR(""));
	bson_put_int32(c->reply, STR("syncSourceId"), -1);
	for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
		bson_put_int32(c->reply, str_from_cstr(ones[i]), 1);
	/* Every commit is on disk, and there is no member that could lag behind. */
	bson_begin_document(c->reply, STR("optimes"));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		put_time(c, str_from_cstr(times[i]));
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("members"));
	put_member(c, now_ms);
	bson_end(c->reply);
	return STATUS_OK;
}

enum status
mongo_run_set_config(struct call *c)
{
	TRY(check_set(c));
	bson_begin_document(c->reply, STR("config"));
	bson_put_string(c->reply, STR("_id"), str_from_cstr(c->mongo->set));
	bson_put_int32(c->reply, STR("version"), SET_VERSION);
	bson_put_int32(c->reply, STR("term"), SET_TERM);
	bson_begin_array(c->reply, STR("members"));
	bson_begin_document(c->reply, STR(""));
	bson_put_int32(c->reply, STR("_id"), 0);
	bson_put_string(c->reply, STR("host"), str_from_cstr(c->mongo->host));
	bson_put_bool(c->reply, STR("arbiterOnly"), false);
	bson_put_bool(c->reply, STR("buildIndexes"), true);
	bson_put_bool(c->reply, STR("hidden"), false);
	bson_put_double(c->reply, STR("priority"), 1);
	bson_begin_document(c->reply, STR("tags"));
	bson_end(c->reply);
	bson_put_int64(c->reply, STR("secondaryDelaySecs"), 0);
	bson_put_int32(c->reply, STR("votes"), 1);
	bson_end(c->reply);
	bson_end(c->reply);
	bson_put_int64(c->reply, STR("protocolVersion"), 1);
	bson_put_bool(c->reply, STR("writeConcernMajorityJournalDefault"), true);
	bson_end(c->reply);
	return STATUS_OK;
}

/* Nothing has to be done before the set can be used. */
enum status
mongo_run_set_initiate(struct call *c)
{
	TRY(check_set(c));
	return call_fail(c, MONGO_ALREADY_INITIALIZED, "already initialized");
}
