#include "door/rows/conn/request.h"

enum status
rows_request_allow(struct rows_request *r, enum grant wanted, struct str schema, struct str table)
{
	if (rows_rights_allow(&r->client->rights, wanted, schema, table))
		return STATUS_OK;
	return rows_fail(r, ROWS_STATE_RIGHT, "no right to %s %.*s%s%.*s", grant_word(wanted),
			 STR_ARG(schema), table.len ? "." : "", STR_ARG(table));
}
