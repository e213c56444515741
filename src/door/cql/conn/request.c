#include "door/cql/conn/request.h"

enum status
request_allow(struct cql_request *r, enum grant wanted, struct str keyspace, struct str table)
{
	struct cql_client *c = r->client;

	if (grants_allow(&c->grants, wanted, keyspace, table))
		return STATUS_OK;
	if (!keyspace.len)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "User %.*s has no %s permission on <all keyspaces> or any of "
				    "its parents",
				    STR_ARG(c->user.name), grant_name(wanted));
	if (!table.len)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "User %.*s has no %s permission on <keyspace %.*s> or any of "
				    "its parents",
				    STR_ARG(c->user.name), grant_name(wanted), STR_ARG(keyspace));
	return request_fail(r, CQL_CODE_UNAUTHORIZED,
			    "User %.*s has no %s permission on <table %.*s.%.*s> or any of its "
			    "parents",
			    STR_ARG(c->user.name), grant_name(wanted), STR_ARG(keyspace),
			    STR_ARG(table));
}
