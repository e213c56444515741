#include "cql/cql.h"

enum {
	ARG_BYTES = 256, /* of an argument that are shown */
};

static const struct {
	enum cql_code code;
	struct str text;
} error_rows[CQL_ERROR_COUNT] = {
#define CQL_ERROR_ROW(name, code, text)                                                            \
	[CQL_E_##name] = { CQL_CODE_##code, { text, sizeof(text) - 1 } },
	CQL_ERRORS(CQL_ERROR_ROW)
#undef CQL_ERROR_ROW
};

enum cql_code
cql_error_code(enum cql_error e)
{
	return error_rows[e].code;
}

struct str
cql_error_text(enum cql_error e)
{
	return error_rows[e].text;
}

void
cql_fail_with(struct cql *q, enum cql_error e, const struct str *args, size_t count)
{
	struct str text = error_rows[e].text;
	struct buf said = BUF_SHORT(ERR_TEXT_BYTES * 4);
	size_t used = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '{' && i + 1 < text.len && text.ptr[i + 1] == '}' &&
		    used < count) {
			struct str arg = args[used++];

			buf_append(&said, arg.ptr, arg.len < ARG_BYTES ? arg.len : ARG_BYTES);
			i++;
		} else {
			buf_append_byte(&said, (uint8_t)text.ptr[i]);
		}
	}
	q->code = error_rows[e].code;
	err_write(q->err, STATUS_INVALID, "%.*s", STR_ARG(buf_str(&said)));
	buf_release(&said);
}
