/* Which tables are made up, and what their columns are. */
#include "door/cql/schema/system.h"

#include "door/cql/schema/system_int.h"

#define MAP "frozen<map<text, text>>"

/* Names and types by turns: partition key; clustering key; others. */
static const struct schema_system systems[] = {
	{ "system", "local", "key text", "",
	  "bootstrapped text|broadcast_address inet|broadcast_port int|cluster_name text|"
	  "cql_version text|data_center text|gossip_generation int|host_id uuid|"
	  "listen_address inet|listen_port int|native_protocol_version text|partitioner text|"
	  "rack text|release_version text|rpc_address inet|rpc_port int|schema_version uuid|"
	  "tokens set<text>|truncated_at map<uuid, blob>",
	  system_local_rows },
	{ "system", "peers", "peer inet", "",
	  "data_center text|host_id uuid|preferred_ip inet|rack text|release_version text|"
	  "rpc_address inet|schema_version uuid|tokens set<text>",
	  NULL },
	{ "system", "peers_v2", "peer inet", "peer_port int",
	  "data_center text|host_id uuid|native_address inet|native_port int|preferred_ip inet|"
	  "preferred_port int|rack text|release_version text|schema_version uuid|tokens set<text>",
	  NULL },
	{ "system", "IndexInfo", "table_name text", "index_name text", "value text",
	  system_index_info_rows },
	{ "system", "built_views", "keyspace_name text", "view_name text",
	  "status_replicated boolean", NULL },
	{ "system", "size_estimates", "keyspace_name text",
	  "table_name text|range_start text|range_end text",
	  "mean_partition_size bigint|partitions_count bigint", NULL },
	{ "system_schema", "keyspaces", "keyspace_name text", "",
	  "durable_writes boolean|replication " MAP, system_keyspaces_rows },
	{ "system_schema", "tables", "keyspace_name text", "table_name text",
	  "additional_write_policy text|bloom_filter_fp_chance double|caching " MAP
	  "|cdc boolean|comment text|compaction " MAP "|compression " MAP
	  "|crc_check_chance double|dclocal_read_repair_chance double|default_time_to_live int|"
	  "extensions frozen<map<text, blob>>|flags frozen<set<text>>|gc_grace_seconds int|"
	  "history_seconds int|id uuid|max_index_interval int|memtable_flush_period_in_ms "
	  "int|min_index_interval int|"
	  "read_repair text|read_repair_chance double|speculative_retry text|"
	  "transactions " MAP,
	  system_tables_rows },
	{ "system_schema", "columns", "keyspace_name text", "table_name text|column_name text",
	  "clustering_order text|column_name_bytes blob|kind text|position int|type text",
	  system_columns_rows },
	{ "system_schema", "dropped_columns", "keyspace_name text",
	  "table_name text|column_name text", "dropped_time timestamp|kind text|type text",
	  system_dropped_rows },
	{ "system_schema", "types", "keyspace_name text", "type_name text",
	  "field_names frozen<list<text>>|field_types frozen<list<text>>", system_types_rows },
	{ "system_schema", "indexes", "keyspace_name text", "table_name text|index_name text",
	  "kind text|options " MAP, system_indexes_rows },
	{ "system_schema", "triggers", "keyspace_name text", "table_name text|trigger_name text",
	  "options " MAP, NULL },
	{ "system_schema", "views", "keyspace_name text", "view_name text",
	  "additional_write_policy text|base_table_id uuid|base_table_name text|"
	  "bloom_filter_fp_chance double|caching " MAP "|cdc boolean|comment text|compaction " MAP
	  "|compression " MAP
	  "|crc_check_chance double|dclocal_read_repair_chance double|default_time_to_live int|"
	  "extensions frozen<map<text, blob>>|gc_grace_seconds int|id uuid|"
	  "include_all_columns boolean|max_index_interval int|memtable_flush_period_in_ms int|"
	  "min_index_interval int|read_repair text|read_repair_chance double|"
	  "speculative_retry text|where_clause text",
	  NULL },
	{ "system_schema", "functions", "keyspace_name text",
	  "function_name text|argument_types frozen<list<text>>",
	  "argument_names frozen<list<text>>|body text|called_on_null_input boolean|language text|"
	  "return_type text",
	  NULL },
	{ "system_schema", "aggregates", "keyspace_name text",
	  "aggregate_name text|argument_types frozen<list<text>>",
	  "final_func text|initcond text|return_type text|state_func text|state_type text", NULL },
	{ "system_auth", "roles", "role text", "",
	  "can_login boolean|is_superuser boolean|member_of set<text>|salted_hash text",
	  system_roles_rows },
	{ "system_auth", "role_members", "role text", "member text", "", system_members_rows },
	{ "system_auth", "role_permissions", "role text", "resource text", "permissions set<text>",
	  system_permissions_rows },
	{ "system_auth", "network_permissions", "role text", "", "dcs frozen<set<text>>", NULL },
	{ "system_traces", "sessions", "session_id uuid", "",
	  "client inet|command text|coordinator inet|coordinator_port int|duration int|"
	  "parameters map<text, text>|request text|started_at timestamp",
	  system_sessions_rows },
	{ "system_traces", "events", "session_id uuid", "event_id timeuuid",
	  "activity text|source inet|source_elapsed int|source_port int|thread text",
	  system_events_rows },
	{ "system_virtual_schema", "keyspaces", "keyspace_name text", "", "",
	  system_virtual_keyspaces_rows },
	{ "system_virtual_schema", "tables", "keyspace_name text", "table_name text",
	  "comment text", system_virtual_tables_rows },
	{ "system_virtual_schema", "columns", "keyspace_name text",
	  "table_name text|column_name text",
	  "clustering_order text|column_name_bytes blob|kind text|position int|type text",
	  system_virtual_columns_rows },
};

enum {
	SYSTEMS = sizeof(systems) / sizeof(systems[0]),
};

bool
schema_keyspace_is_system(struct str keyspace)
{
	for (size_t i = 0; i < SYSTEMS; i++)
		if (str_eq(keyspace, str_from_cstr(systems[i].keyspace)))
			return true;
	return false;
}

enum status
schema_system_open(struct cql *q, struct str keyspace, struct str name, struct schema_table **ret)
{
	for (size_t i = 0; i < SYSTEMS; i++)
		if (str_eq(keyspace, str_from_cstr(systems[i].keyspace)) &&
		    str_eq(name, str_from_cstr(systems[i].name)))
			return schema_system_make(q, &systems[i], ret);
	return STATUS_NOT_FOUND;
}

void
schema_rows_close(struct schema_rows *rows)
{
	schema_close(&rows->all);
}

enum status
schema_system_rows(struct cql *q, struct schema_types *types, const struct schema_server *server,
		   const struct schema_table *t, struct str only, struct schema_rows *ret)
{
	struct system_making m = { .q = q,
				   .types = types,
				   .server = server,
				   .table = t,
				   .only = only,
				   .systems = systems,
				   .system_count = SYSTEMS,
				   .rows = ret };

	*ret = (struct schema_rows){ 0 };
	return t->system->rows ? t->system->rows(&m) : STATUS_OK;
}
