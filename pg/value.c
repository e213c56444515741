/* Values: PostgreSQL's Datums as the bytes that messages of rows have, and back. */
#include "frond_pg.h"

#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

enum {
	INET_HEAD_BYTES = 2,
	BITS_HEAD_BYTES = 4,
	INTERVAL_BYTES = 16,
	TIMETZ_BYTES = 12,
};

static const struct {
	Oid type;
	enum frows_kind kind;
	const char *name; /* of the type that stands for the kind, where nobody says which */
} types[] = {
	{ BOOLOID, FROWS_BOOL, "boolean" },
	{ INT2OID, FROWS_INT2, "smallint" },
	{ INT4OID, FROWS_INT4, "integer" },
	{ INT8OID, FROWS_INT8, "bigint" },
	{ OIDOID, FROWS_INT8, NULL },
	{ CASHOID, FROWS_INT8, NULL },
	{ FLOAT4OID, FROWS_FLOAT4, "real" },
	{ FLOAT8OID, FROWS_FLOAT8, "double precision" },
	{ NUMERICOID, FROWS_NUMERIC, "numeric" },
	{ TEXTOID, FROWS_TEXT, "text" },
	{ VARCHAROID, FROWS_TEXT, NULL },
	{ BPCHAROID, FROWS_TEXT, NULL },
	{ BYTEAOID, FROWS_BYTES, "bytea" },
	{ DATEOID, FROWS_DATE, "date" },
	{ TIMEOID, FROWS_TIME, "time" },
	{ TIMETZOID, FROWS_TIMETZ, "timetz" },
	{ TIMESTAMPOID, FROWS_TIMESTAMP, "timestamp" },
	{ TIMESTAMPTZOID, FROWS_TIMESTAMPTZ, "timestamptz" },
	{ INTERVALOID, FROWS_INTERVAL, "interval" },
	{ UUIDOID, FROWS_UUID, "uuid" },
	{ INETOID, FROWS_INET, "inet" },
	{ CIDROID, FROWS_INET, NULL },
	{ MACADDROID, FROWS_MACADDR, "macaddr" },
	{ MACADDR8OID, FROWS_MACADDR8, "macaddr8" },
	{ VARBITOID, FROWS_BITS, "varbit" },
	{ BITOID, FROWS_BITS, NULL },
};

enum frows_kind
frond_kind_of(Oid type)
{
	type = getBaseType(type);
	for (size_t i = 0; i < lengthof(types); i++)
		if (types[i].type == type)
			return types[i].kind;
	return FROWS_OTHER;
}

const char *
frond_type_of_kind(enum frows_kind kind)
{
	for (size_t i = 0; i < lengthof(types); i++)
		if (types[i].kind == kind && types[i].name)
			return types[i].name;
	return kind == FROWS_OTHER ? "text" : NULL;
}

void
frond_column_set_type(struct frond_column *c, Oid type, int32 typmod)
{
	Oid function;
	bool is_varlena;

	c->typmod = typmod;
	c->type = getBaseTypeAndTypmod(type, &c->typmod);
	c->kind = frond_kind_of(c->type);
	getTypeInputInfo(c->type, &function, &c->io_param);
	fmgr_info_cxt(function, &c->in, CurrentMemoryContext);
	getTypeOutputInfo(c->type, &function, &is_varlena);
	fmgr_info_cxt(function, &c->out, CurrentMemoryContext);
}

struct frows_value
frond_value_copy(struct frows_value v)
{
	if (v.len > 0)
		v.ptr = memcpy(palloc(v.len), v.ptr, v.len);
	return v;
}

/* ---- To frond ---- */

static struct frows_value
put_int(int64 n, size_t bytes)
{
	uint8 *to = palloc(bytes);

	frows_put_int(to, n, bytes);
	return (struct frows_value){ to, (int32)bytes };
}

/* Text is UTF-8 in frond. */
static struct frows_value
put_text(const char *text, int len)
{
	const char *utf8 = pg_server_to_any(text, len, PG_UTF8);

	return (struct frows_value){ utf8, utf8 == text ? len : (int32)strlen(utf8) };
}

static struct frows_value
put_varlena(const struct frond_column *c, Datum d)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);
	const char *at = VARDATA_ANY(v);
	int len = (int)VARSIZE_ANY_EXHDR(v);

	if (c->kind == FROWS_BYTES)
		return (struct frows_value){ at, len };
	/* Blanks at the end of a char(n) mean nothing. */
	while (c->type == BPCHAROID && len && at[len - 1] == ' ')
		len--;
	return put_text(at, len);
}

static struct frows_value
put_interval(const Interval *i)
{
	uint8 *to = palloc(INTERVAL_BYTES);

	frows_put_int(to, i->time, 8);
	frows_put_int(to + 8, i->day, 4);
	frows_put_int(to + 12, i->month, 4);
	return (struct frows_value){ to, INTERVAL_BYTES };
}

static struct frows_value
put_timetz(const TimeTzADT *t)
{
	uint8 *to = palloc(TIMETZ_BYTES);

	frows_put_int(to, t->time, 8);
	frows_put_int(to + 8, t->zone, 4);
	return (struct frows_value){ to, TIMETZ_BYTES };
}

static struct frows_value
put_inet(inet *i)
{
	int bytes = ip_addrsize(i);
	uint8 *to = palloc(INET_HEAD_BYTES + bytes);

	to[0] = ip_family(i) == PGSQL_AF_INET ? 4 : 6;
	to[1] = ip_bits(i);
	memcpy(to + INET_HEAD_BYTES, ip_addr(i), bytes);
	return (struct frows_value){ to, INET_HEAD_BYTES + bytes };
}

static struct frows_value
put_bits(VarBit *b)
{
	int bytes = VARBITBYTES(b);
	uint8 *to = palloc(BITS_HEAD_BYTES + bytes);

	frows_put_int(to, VARBITLEN(b), BITS_HEAD_BYTES);
	memcpy(to + BITS_HEAD_BYTES, VARBITS(b), bytes);
	return (struct frows_value){ to, BITS_HEAD_BYTES + bytes };
}

static struct frows_value
put_cstring(const char *text)
{
	return put_text(text, (int)strlen(text));
}

struct frows_value
frond_value_put(const struct frond_column *c, Datum d)
{
	float8 real;
	uint8 *room;
	FmgrInfo out;

	switch (c->kind) {
	case FROWS_BOOL:
		return put_int(DatumGetBool(d), 1);
	case FROWS_INT2:
		return put_int(DatumGetInt16(d), 2);
	case FROWS_INT4:
		return put_int(DatumGetInt32(d), 4);
	case FROWS_INT8:
		return put_int(c->type == OIDOID ? (int64)DatumGetObjectId(d) : DatumGetInt64(d),
			       8);
	case FROWS_FLOAT4:
		/* The bits of a float are the Datum. */
		return put_int(DatumGetInt32(d), 4);
	case FROWS_FLOAT8:
		real = DatumGetFloat8(d);
		room = palloc(sizeof(real));
		frows_put_float8(room, real);
		return (struct frows_value){ room, sizeof(real) };
	case FROWS_NUMERIC:
		return put_cstring(DatumGetCString(DirectFunctionCall1(numeric_out, d)));
	case FROWS_TEXT:
	case FROWS_BYTES:
		return put_varlena(c, d);
	case FROWS_DATE:
		return put_int(DatumGetDateADT(d), 4);
	case FROWS_TIME:
	case FROWS_TIMESTAMP:
	case FROWS_TIMESTAMPTZ:
		return put_int(DatumGetInt64(d), 8);
	case FROWS_TIMETZ:
		return put_timetz(DatumGetTimeTzADTP(d));
	case FROWS_INTERVAL:
		return put_interval(DatumGetIntervalP(d));
	case FROWS_UUID:
		return (struct frows_value){ DatumGetUUIDP(d)->data, UUID_LEN };
	case FROWS_INET:
		return put_inet(DatumGetInetPP(d));
	case FROWS_MACADDR:
		return (struct frows_value){ DatumGetMacaddrP(d), sizeof(macaddr) };
	case FROWS_MACADDR8:
		return (struct frows_value){ DatumGetMacaddr8P(d), sizeof(macaddr8) };
	case FROWS_BITS:
		return put_bits(DatumGetVarBitP(d));
	case FROWS_OTHER:
	case FROWS_NONE:
		break;
	}
	out = c->out;
	return put_cstring(OutputFunctionCall(&out, d));
}

/* ---- From frond ---- */

static void
fail_value(const struct frond_column *c)
{
	ereport(ERROR, errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
		errmsg("a value from frond is none of the type %s", format_type_be(c->type)));
}

static void
check_bytes(const struct frond_column *c, struct frows_value v, int bytes)
{
	if (v.len != bytes)
		fail_value(c);
}

/* As a string in the database's encoding, which ends with a NUL. */
static char *
get_cstring(struct frows_value v)
{
	char *text = pnstrdup(v.ptr ? v.ptr : "", v.len);
	char *here = pg_any_to_server(text, v.len, PG_UTF8);

	return here;
}

static Datum
get_by_input(const struct frond_column *c, struct frows_value v)
{
	FmgrInfo in = c->in;

	return InputFunctionCall(&in, get_cstring(v), c->io_param, c->typmod);
}

static Datum
get_text(const struct frond_column *c, struct frows_value v)
{
	if (c->kind == FROWS_BYTES)
		return PointerGetDatum(cstring_to_text_with_len(v.ptr ? v.ptr : "", v.len));
	if (c->type == BPCHAROID)
		return get_by_input(c, v);
	return CStringGetTextDatum(get_cstring(v));
}

static Datum
get_interval(struct frows_value v)
{
	const uint8 *at = v.ptr;
	Interval *i = palloc(sizeof(*i));

	i->time = frows_int((struct frows_value){ at, 8 });
	i->day = (int32)frows_int((struct frows_value){ at + 8, 4 });
	i->month = (int32)frows_int((struct frows_value){ at + 12, 4 });
	return IntervalPGetDatum(i);
}

static Datum
get_timetz(struct frows_value v)
{
	const uint8 *at = v.ptr;
	TimeTzADT *t = palloc(sizeof(*t));

	t->time = frows_int((struct frows_value){ at, 8 });
	t->zone = (int32)frows_int((struct frows_value){ at + 8, 4 });
	return TimeTzADTPGetDatum(t);
}

static Datum
get_inet(const struct frond_column *c, struct frows_value v)
{
	const uint8 *at = v.ptr;
	inet *i = palloc0(sizeof(*i));

	if (v.len < INET_HEAD_BYTES || (at[0] != 4 && at[0] != 6))
		fail_value(c);
	ip_family(i) = at[0] == 4 ? PGSQL_AF_INET : PGSQL_AF_INET6;
	ip_bits(i) = at[1];
	check_bytes(c, v, INET_HEAD_BYTES + ip_addrsize(i));
	memcpy(ip_addr(i), at + INET_HEAD_BYTES, ip_addrsize(i));
	SET_INET_VARSIZE(i);
	return InetPGetDatum(i);
}

static Datum
get_bits(const struct frond_column *c, struct frows_value v)
{
	const uint8 *at = v.ptr;
	int64 bits;
	VarBit *b;

	if (v.len < BITS_HEAD_BYTES)
		fail_value(c);
	bits = frows_int((struct frows_value){ at, BITS_HEAD_BYTES });
	if (bits < 0 || (bits + 7) / 8 != v.len - BITS_HEAD_BYTES)
		fail_value(c);
	b = palloc0(VARBITTOTALLEN(bits));
	SET_VARSIZE(b, VARBITTOTALLEN(bits));
	VARBITLEN(b) = (int32)bits;
	memcpy(VARBITS(b), at + BITS_HEAD_BYTES, v.len - BITS_HEAD_BYTES);
	return VarBitPGetDatum(b);
}

static Datum
get_copy(struct frows_value v)
{
	void *copy = palloc(v.len);

	memcpy(copy, v.ptr, v.len);
	return PointerGetDatum(copy);
}

/* Of a kind whose values have all so many bytes. */
static Datum
get_number(const struct frond_column *c, struct frows_value v)
{
	int64 n = frows_int(v);

	switch (c->kind) {
	case FROWS_BOOL:
		check_bytes(c, v, 1);
		return BoolGetDatum(n != 0);
	case FROWS_INT2:
		check_bytes(c, v, 2);
		return Int16GetDatum((int16)n);
	case FROWS_FLOAT8:
		check_bytes(c, v, 8);
		return Float8GetDatum(frows_float8(v));
	case FROWS_INT4:
	case FROWS_FLOAT4:
	case FROWS_DATE:
		check_bytes(c, v, 4);
		return Int32GetDatum((int32)n);
	default:
		check_bytes(c, v, 8);
		return c->type == OIDOID ? ObjectIdGetDatum((Oid)n) : Int64GetDatum(n);
	}
}

Datum
frond_value_get(const struct frond_column *c, struct frows_value v)
{
	switch (c->kind) {
	case FROWS_TEXT:
	case FROWS_BYTES:
		return get_text(c, v);
	case FROWS_TIMETZ:
		check_bytes(c, v, TIMETZ_BYTES);
		return get_timetz(v);
	case FROWS_INTERVAL:
		check_bytes(c, v, INTERVAL_BYTES);
		return get_interval(v);
	case FROWS_UUID:
		check_bytes(c, v, UUID_LEN);
		return get_copy(v);
	case FROWS_INET:
		return get_inet(c, v);
	case FROWS_MACADDR:
		check_bytes(c, v, sizeof(macaddr));
		return get_copy(v);
	case FROWS_MACADDR8:
		check_bytes(c, v, sizeof(macaddr8));
		return get_copy(v);
	case FROWS_BITS:
		return get_bits(c, v);
	case FROWS_NUMERIC:
	case FROWS_OTHER:
	case FROWS_NONE:
		return get_by_input(c, v);
	default:
		return get_number(c, v);
	}
}
