#include "door/cql/conn/request.h"

#include "net/memory.h"

bool
request_may_wait(const struct cql_request *r)
{
	return !r->writes && (r->flight || !r->client->flights.count);
}

bool
request_gives_way(const struct cql_request *r)
{
	return request_may_wait(r) && net_memory_should_ask(net_stream_session(r->client->stream));
}

enum status
request_allow_on(struct cql_request *r, unsigned wanted, const struct grant_resource *on)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(GRANTS_TEXT_BYTES);
	struct cql_client *c = r->client;

	if (grants_allow_on(&c->grants, wanted, on))
		return STATUS_OK;
	grant_resource_describe(on, &text);
	return request_fail(r, CQL_CODE_UNAUTHORIZED,
			    "User %.*s has no %s permission on %.*s or any of its parents",
			    STR_ARG(c->entry.who.user.name), grant_name((enum grant)wanted),
			    STR_ARG(buf_str(&text)));
}

enum status
request_allow(struct cql_request *r, enum grant wanted, struct str keyspace, struct str table)
{
	return request_allow_on(r, wanted,
				&(struct grant_resource){ .tables = { keyspace, table } });
}
