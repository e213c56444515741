#include "door/cql/wire/error.h"

#include "base/utf8.h"

static const struct str write_names[] = {
	[ERROR_WRITE_SIMPLE] = { "SIMPLE", 6 },
	[ERROR_WRITE_BATCH] = { "BATCH", 5 },
	[ERROR_WRITE_COUNTER] = { "COUNTER", 7 },
	[ERROR_WRITE_CAS] = { "CAS", 3 },
};

enum cql_code
error_code_of(enum status status, bool writes)
{
	switch ((int)status) {
	case STATUS_NOMEM:
	case STATUS_LIMIT:
	case STATUS_BUSY:
	case STATUS_TOO_MANY:
		return CQL_CODE_OVERLOADED;
	case STATUS_TX_CONFLICT:
	case STATUS_TX_TOO_OLD:
	case STATUS_TX_UNKNOWN:
	case STATUS_TIMEOUT:
	case STATUS_CANCELLED:
	case STATUS_STEPS:
		return writes ? CQL_CODE_WRITE_TIMEOUT : CQL_CODE_READ_TIMEOUT;
	case STATUS_UNAVAILABLE:
	case STATUS_LOCKED:
	case STATUS_FULL:
	case STATUS_STANDBY:
		return CQL_CODE_UNAVAILABLE;
	case STATUS_UNAUTHORIZED:
		return CQL_CODE_LOGIN;
	case STATUS_FORBIDDEN:
		return CQL_CODE_UNAUTHORIZED;
	case STATUS_EXISTS:
	case STATUS_DUPLICATE:
	case STATUS_INVALID:
	case STATUS_UNSUPPORTED:
	case STATUS_NOT_FOUND:
	case STATUS_TX_TOO_LARGE:
	case STATUS_KEY_TOO_LARGE:
	case STATUS_VALUE_TOO_LARGE:
		return CQL_CODE_INVALID;
	default:
		return CQL_CODE_SERVER;
	}
}

/* [string] of the parts of the text that are UTF-8. */
static void
text_put(struct buf *out, struct str text)
{
	size_t from = out->len, valid;

	frame_put_u16(out, 0);
	for (; text.len; text = str_skip(text, valid + (valid < text.len))) {
		valid = utf8_valid_prefix(text);
		buf_append(out, text.ptr, valid);
	}
	if (buf_status(out) != STATUS_OK)
		return;
	out->ptr[from] = (char)((out->len - from - 2) >> 8);
	out->ptr[from + 1] = (char)(out->len - from - 2);
}

void
error_put(struct buf *out, enum cql_code code, struct str text, const struct error_more *more)
{
	if (text.len > ERR_TEXT_BYTES * 8)
		text.len = ERR_TEXT_BYTES * 8;
	frame_put_i32(out, (int32_t)code);
	text_put(out, text);
	switch (code) {
	case CQL_CODE_UNAVAILABLE:
		frame_put_u16(out, more->consistency);
		frame_put_i32(out, 1); /* required */
		frame_put_i32(out, 0); /* alive */
		break;
	case CQL_CODE_WRITE_TIMEOUT:
		frame_put_u16(out, more->consistency);
		frame_put_i32(out, 0); /* received */
		frame_put_i32(out, 1); /* waited for */
		frame_put_short(out, write_names[more->write]);
		break;
	case CQL_CODE_READ_TIMEOUT:
		frame_put_u16(out, more->consistency);
		frame_put_i32(out, 0);
		frame_put_i32(out, 1);
		buf_append_byte(out, 0); /* no data came */
		break;
	case CQL_CODE_EXISTS:
		frame_put_short(out, more->keyspace);
		frame_put_short(out, more->table);
		break;
	case CQL_CODE_UNPREPARED:
		frame_put_short(out, more->id);
		break;
	case CQL_CODE_FUNCTION:
		frame_put_short(out, more->keyspace);
		frame_put_short(out, STR(""));
		frame_put_u16(out, 0);
		break;
	case CQL_CODE_SERVER:
	case CQL_CODE_PROTOCOL:
	case CQL_CODE_LOGIN:
	case CQL_CODE_OVERLOADED:
	case CQL_CODE_TRUNCATE:
	case CQL_CODE_READ_FAILURE:
	case CQL_CODE_WRITE_FAILURE:
	case CQL_CODE_CAS_UNKNOWN:
	case CQL_CODE_SYNTAX:
	case CQL_CODE_UNAUTHORIZED:
	case CQL_CODE_INVALID:
	case CQL_CODE_CONFIG:
		break;
	}
}
