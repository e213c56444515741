/* Strings as bits. */
#include <assert.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/wire/number.h"
#include "loop/step.h"

enum {
	STEP_BYTES = 1024, /* that are counted as one step */
};

static const uint64_t bits_most = UINT64_C(8) * DATA_VALUE_BYTES;

/* ---- One bit ---- */

static enum status
read_offset(struct call *c, struct str s, bool hash, unsigned bits, uint64_t *ret)
{
	int64_t n;

	if (hash && s.len && s.ptr[0] == '#')
		s = str_skip(s, 1);
	else
		hash = false;
	if (number_read_i64(s, &n) && n >= 0 &&
	    !(hash && __builtin_mul_overflow(n, (int64_t)bits, &n)) && (uint64_t)n < bits_most) {
		*ret = (uint64_t)n;
		return STATUS_OK;
	}
	return call_error(c, STR("ERR bit offset is not an integer or out of range"));
}

/* The byte at an offset of a value; 0 behind its end. */
static enum status
read_byte(struct timed_item *item, uint64_t at, uint8_t *ret)
{
	struct str byte;

	*ret = 0;
	if (item->type == TIMED_LEAF || at >= item->length)
		return STATUS_OK;
	TRY(timed_value_get(item, at, 1, &byte));
	*ret = (uint8_t)byte.ptr[0];
	return STATUS_OK;
}

/* True if writing within the first `n` bytes makes the value no longer. */
static bool
has_bytes(const struct timed_item *item, uint64_t n)
{
	return item->type != TIMED_LEAF && n <= item->length;
}

enum status
cmd_getbit(struct call *c)
{
	struct timed_item *item;
	uint64_t offset;
	uint8_t byte;

	TRY(read_offset(c, c->argv[2], false, 0, &offset));
	TRY(data_item(c, 1, TIMED_VALUE, &item));
	TRY(read_byte(item, offset / 8, &byte));
	reply_int(c->reply, byte >> (7 - offset % 8) & 1);
	return STATUS_OK;
}

enum status
cmd_setbit(struct call *c)
{
	struct timed_item *item;
	uint64_t offset;
	uint8_t old, byte, bit;
	int64_t on;

	TRY(read_offset(c, c->argv[2], false, 0, &offset));
	TRY(call_int_range(c, 3, 0, 1, "bit is not an integer or out of range", &on));
	TRY(data_item(c, 1, TIMED_VALUE, &item));
	TRY(read_byte(item, offset / 8, &old));
	bit = (uint8_t)(1 << (7 - offset % 8));
	reply_int(c->reply, old & bit ? 1 : 0);
	byte = (uint8_t)(on ? old | bit : old & ~bit);
	if (byte == old && has_bytes(item, offset / 8 + 1))
		return STATUS_OK;
	TRY(timed_value_write(item, offset / 8, str_of(&byte, 1)));
	return txn_changed(c, c->argv[1], EVENT_STRING, "setbit");
}

/* ---- Counting and finding ---- */

/* A range of bits, from `from` up to and with `to`. */
struct bit_range {
	uint64_t from, to;
	bool inverted; /* both ends are negative, and the wrong way round */
	bool empty;
};

/* BIT or BYTE, if it is there. */
static enum status
read_unit(struct call *c, size_t i, bool *ret_bits)
{
	*ret_bits = call_arg_is(c, i, "bit");
	if (i >= c->argc || *ret_bits || call_arg_is(c, i, "byte"))
		return STATUS_OK;
	return call_syntax_error(c);
}

/*
 * `first`: the argument of the start; absent: all. Which of two errors is told depends on the
 * command: BITPOS looks at the unit before the end.
 */
static enum status
read_range(struct call *c, size_t first, uint64_t length, struct bit_range *ret, bool *ret_ends)
{
	bool bitpos = first == 3;
	bool bits = false;
	int64_t from = 0, to = -1;

	*ret_ends = first + 1 < c->argc;
	if (c->argc > first + 3)
		return call_syntax_error(c);
	if (first < c->argc)
		TRY(call_int(c, first, &from));
	if (bitpos)
		TRY(read_unit(c, first + 2, &bits));
	if (first + 1 < c->argc)
		TRY(call_int(c, first + 1, &to));
	ret->inverted = from < 0 && to < 0 && from > to;
	if (!bitpos && ret->inverted) {
		ret->empty = true;
		return STATUS_OK;
	}
	if (!bitpos)
		TRY(read_unit(c, first + 2, &bits));
	if (bits)
		length *= 8;
	if (to < 0 && to + (int64_t)length < 0)
		to = -(int64_t)length;
	ret->empty = !data_clip_range(&from, &to, length);
	if (ret->empty)
		return STATUS_OK;
	ret->from = bits ? (uint64_t)from : (uint64_t)from * 8;
	ret->to = bits ? (uint64_t)to : (uint64_t)to * 8 + 7;
	return STATUS_OK;
}

/* The bits of a range, in parts, so that the arena need not have room for all of them. */
static struct bit_range
range_part(const struct bit_range *all, uint64_t from)
{
	uint64_t most = from / 8 * 8 + DATA_PART_BYTES * UINT64_C(8) - 1;

	assert(all->from <= from && from <= all->to);
	return (struct bit_range){ .from = from, .to = all->to < most ? all->to : most };
}

static struct bit_range
range_begin(const struct bit_range *all)
{
	return range_part(all, all->from);
}

static struct bit_range
range_next(const struct bit_range *all, const struct bit_range *part)
{
	if (part->to == all->to)
		return (struct bit_range){ .empty = true };
	return range_part(all, part->to + 1);
}

/* The bytes that have the bits of a part. */
static enum status
range_read(struct timed_item *item, const struct bit_range *part, struct str *ret)
{
	uint64_t len = part->to / 8 - part->from / 8 + 1;

	TRY(step_count((uint32_t)(len / STEP_BYTES) + 1));
	return timed_value_get(item, part->from / 8, len, ret);
}

static int64_t
count_bits(struct str bytes, const struct bit_range *range)
{
	int64_t count = 0;

	for (size_t i = 0; i < bytes.len; i++) {
		uint8_t byte = (uint8_t)bytes.ptr[i];

		if (i == 0)
			byte &= (uint8_t)(0xff >> range->from % 8);
		if (i + 1 == bytes.len)
			byte &= (uint8_t)(0xff << (7 - range->to % 8));
		count += __builtin_popcount(byte);
	}
	return count;
}

enum status
cmd_bitcount(struct call *c)
{
	struct bit_range range;
	struct timed_item *item;
	struct str bytes;
	int64_t count = 0;
	bool ends;

	TRY(data_item(c, 1, TIMED_VALUE, &item));
	if (item->type == TIMED_LEAF) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	if (c->argc == 3 || c->argc > 5)
		return call_syntax_error(c);
	TRY(read_range(c, 2, item->length, &range, &ends));
	if (range.empty) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	for (struct bit_range part = range_begin(&range); !part.empty;
	     part = range_next(&range, &part)) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(range_read(item, &part, &bytes));
		count += count_bits(bytes, &part);
		arena_reset(item->arena, mark);
	}
	reply_int(c->reply, count);
	return STATUS_OK;
}

static int64_t
find_bit(struct str bytes, const struct bit_range *range, bool wanted)
{
	uint64_t base = range->from / 8 * 8;
	uint8_t dull = wanted ? 0 : 0xff;

	for (uint64_t at = range->from; at <= range->to; at++) {
		uint8_t byte = (uint8_t)bytes.ptr[(at - base) / 8];

		if (byte == dull) {
			at |= 7; /* the rest of the byte is the same */
			continue;
		}
		if ((byte >> (7 - at % 8) & 1) == wanted)
			return (int64_t)at;
	}
	return -1;
}

enum status
cmd_bitpos(struct call *c)
{
	struct bit_range range;
	struct timed_item *item;
	struct str bytes;
	int64_t bit, at;
	bool ends;

	TRY(call_int(c, 2, &bit));
	if (bit != 0 && bit != 1)
		return call_error(c, STR("ERR The bit argument must be 1 or 0."));
	TRY(data_item(c, 1, TIMED_VALUE, &item));
	if (item->type == TIMED_LEAF) {
		reply_int(c->reply, bit ? -1 : 0);
		return STATUS_OK;
	}
	TRY(read_range(c, 3, item->length, &range, &ends));
	if (range.empty) {
		reply_int(c->reply, -1);
		return STATUS_OK;
	}
	at = -1;
	for (struct bit_range part = range_begin(&range); at < 0 && !part.empty;
	     part = range_next(&range, &part)) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(range_read(item, &part, &bytes));
		at = find_bit(bytes, &part, bit);
		arena_reset(item->arena, mark);
	}
	/* Behind the end of a string there are only zeros, if nobody has named an end. */
	if (at < 0 && !bit && !ends)
		at = (int64_t)range.to + 1;
	reply_int(c->reply, at);
	return STATUS_OK;
}

/* ---- BITOP ---- */

enum bit_operation {
	BIT_AND,
	BIT_OR,
	BIT_XOR,
	BIT_NOT,
};

static enum status
read_operation(struct call *c, enum bit_operation *ret)
{
	static const char *const names[] = { "and", "or", "xor", "not" };

	for (int i = 0; i < 4; i++) {
		if (!call_arg_is(c, 1, names[i]))
			continue;
		*ret = (enum bit_operation)i;
		if (*ret == BIT_NOT && c->argc != 4)
			return call_error(
				c, STR("ERR BITOP NOT must be called with a single source key."));
		return STATUS_OK;
	}
	return call_syntax_error(c);
}

static uint8_t
combine_bytes(enum bit_operation operation, const struct str *values, size_t count, size_t at)
{
	uint8_t byte = at < values[0].len ? (uint8_t)values[0].ptr[at] : 0;

	for (size_t i = 1; i < count; i++) {
		uint8_t other = at < values[i].len ? (uint8_t)values[i].ptr[at] : 0;

		if (operation == BIT_AND)
			byte &= other;
		else if (operation == BIT_OR)
			byte |= other;
		else
			byte ^= other;
	}
	return operation == BIT_NOT ? (uint8_t)~byte : byte;
}

enum status
cmd_bitop(struct call *c)
{
	size_t count = c->argc - 3;
	struct str *values = arena_alloc(c->arena, count * sizeof(*values));
	struct timed_item *to;
	enum bit_operation operation;
	size_t longest = 0;
	char *result;

	if (!values)
		return STATUS_LIMIT;
	TRY(read_operation(c, &operation));
	for (size_t i = 0; i < count; i++) {
		struct timed_item *item;

		TRY(data_item_read(c, i + 3, TIMED_VALUE, &item));
		TRY(data_value(item, &values[i]));
		if (values[i].len > longest)
			longest = values[i].len;
	}
	TRY(txn_item(c, c->argv[2], &to));
	reply_int(c->reply, (int64_t)longest);
	if (!longest)
		return to->type == TIMED_LEAF ? STATUS_OK : data_delete(c, to, c->argv[2], "del");
	result = arena_bytes(c->arena, longest);
	if (!result)
		return STATUS_LIMIT;
	for (size_t i = 0; i < longest; i++) {
		result[i] = (char)combine_bytes(operation, values, count, i);
		if (i % STEP_BYTES == 0)
			TRY(step_count((uint32_t)count));
	}
	TRY(timed_value_set(to, str_of(result, longest),
			    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
	return txn_changed(c, c->argv[2], EVENT_STRING, "set");
}

/* ---- BITFIELD ---- */

enum overflow {
	OVERFLOW_WRAP,
	OVERFLOW_SAT,
	OVERFLOW_FAIL,
};

struct field {
	enum {
		FIELD_GET,
		FIELD_SET,
		FIELD_INCRBY
	} kind;
	bool is_signed;
	unsigned bits;
	uint64_t offset;
	int64_t value;
	enum overflow overflow;
};

static enum status
field_read_type(struct call *c, struct str s, struct field *f)
{
	int64_t bits = 0;

	f->is_signed = s.len && s.ptr[0] == 'i';
	if ((f->is_signed || (s.len && s.ptr[0] == 'u')) &&
	    number_read_i64(str_skip(s, 1), &bits) && bits >= 1 &&
	    bits <= (f->is_signed ? 64 : 63)) {
		f->bits = (unsigned)bits;
		return STATUS_OK;
	}
	return call_error(c, STR("ERR Invalid bitfield type. Use something like i16 u8. Note that "
				 "u64 is not supported but i64 is."));
}

/* One operation at argument `*i`. */
static enum status
field_read(struct call *c, size_t *i, enum overflow *overflow, struct field *f, bool *ret_any)
{
	size_t left = c->argc - *i - 1;

	*ret_any = false;
	if (call_arg_is(c, *i, "overflow") && left >= 1) {
		++*i;
		if (call_arg_is(c, *i, "wrap")) {
			*overflow = OVERFLOW_WRAP;
		} else if (call_arg_is(c, *i, "sat")) {
			*overflow = OVERFLOW_SAT;
		} else if (call_arg_is(c, *i, "fail")) {
			*overflow = OVERFLOW_FAIL;
		} else {
			return call_error(c, STR("ERR Invalid OVERFLOW type specified"));
		}
		return STATUS_OK;
	}
	*f = (struct field){ .overflow = *overflow };
	if (call_arg_is(c, *i, "get") && left >= 2) {
		f->kind = FIELD_GET;
	} else if (call_arg_is(c, *i, "set") && left >= 3) {
		f->kind = FIELD_SET;
	} else if (call_arg_is(c, *i, "incrby") && left >= 3) {
		f->kind = FIELD_INCRBY;
	} else {
		return call_syntax_error(c);
	}
	TRY(field_read_type(c, c->argv[*i + 1], f));
	TRY(read_offset(c, c->argv[*i + 2], true, f->bits, &f->offset));
	*i += 2;
	if (f->kind != FIELD_GET)
		TRY(call_int(c, ++*i, &f->value));
	*ret_any = true;
	return STATUS_OK;
}

/* The bytes that the field lies in; those behind the end are zeros. */
static enum status
field_bytes(struct timed_item *item, const struct field *f, uint8_t ret[static 9])
{
	uint64_t from = f->offset / 8;
	struct str bytes = { 0 };

	memset(ret, 0, 9);
	if (item->type == TIMED_LEAF || from >= item->length)
		return STATUS_OK;
	TRY(timed_value_get(item, from, 9, &bytes));
	memcpy(ret, bytes.ptr, bytes.len);
	return STATUS_OK;
}

static int64_t
field_get(const uint8_t bytes[static 9], const struct field *f)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < f->bits; i++) {
		uint64_t at = f->offset % 8 + i;

		n = n << 1 | (bytes[at / 8] >> (7 - at % 8) & 1);
	}
	if (f->is_signed && f->bits > 0 && f->bits < 64 && n >> (f->bits - 1))
		n |= UINT64_MAX << f->bits;
	return (int64_t)n;
}

static void
field_put(uint8_t bytes[static 9], const struct field *f, int64_t value)
{
	for (unsigned i = 0; i < f->bits; i++) {
		uint64_t at = f->offset % 8 + i;
		uint8_t bit = (uint8_t)(1 << (7 - at % 8));

		if ((uint64_t)value >> (f->bits - 1 - i) & 1)
			bytes[at / 8] |= bit;
		else
			bytes[at / 8] &= (uint8_t)~bit;
	}
}

/* The sum as the field can have it; false: it cannot, and the operation fails. */
static bool
field_fit(const struct field *f, __int128 n, int64_t *ret)
{
	__int128 most = f->is_signed ? ((__int128)1 << (f->bits - 1)) - 1
				     : ((__int128)1 << f->bits) - 1;
	__int128 least = f->is_signed ? -((__int128)1 << (f->bits - 1)) : 0;

	if (n < least || n > most) {
		if (f->overflow == OVERFLOW_FAIL)
			return false;
		if (f->overflow == OVERFLOW_SAT)
			n = n < least ? least : most;
	}
	*ret = (int64_t)n;
	if (f->overflow == OVERFLOW_WRAP && f->bits < 64) {
		uint64_t wrapped = (uint64_t)n & ((UINT64_C(1) << f->bits) - 1);

		if (f->is_signed && wrapped >> (f->bits - 1))
			wrapped |= UINT64_MAX << f->bits;
		*ret = (int64_t)wrapped;
	}
	return true;
}

/* Makes room for all that is to be written, also for what will fail, as Redis does. */
static enum status
fields_make_room(struct call *c, struct timed_item *item, const struct field *fields, size_t count,
		 bool *ret_grown)
{
	bool is_new = item->type == TIMED_LEAF;
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t bytes = (fields[i].offset + fields[i].bits + 7) / 8;

		if (fields[i].kind != FIELD_GET && bytes > end)
			end = bytes;
	}
	*ret_grown = end && !has_bytes(item, end);
	if (!*ret_grown)
		return STATUS_OK;
	TRY(timed_value_write(item, end - 1, str_of("", 1)));
	return is_new ? txn_is_new(c, c->db, c->argv[1]) : STATUS_OK;
}

static enum status
field_run(struct call *c, struct timed_item *item, const struct field *f, bool grown, bool *changed)
{
	uint8_t bytes[9];
	size_t count = (f->offset % 8 + f->bits + 7) / 8;
	int64_t old, next;
	bool fits;

	TRY(field_bytes(item, f, bytes));
	old = field_get(bytes, f);
	if (f->kind == FIELD_GET) {
		reply_int(c->reply, old);
		return STATUS_OK;
	}
	fits = field_fit(f, f->kind == FIELD_SET ? (__int128)f->value : (__int128)old + f->value,
			 &next);
	if (!fits) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	reply_int(c->reply, f->kind == FIELD_SET ? old : next);
	*changed |= grown;
	if (next == old)
		return STATUS_OK;
	field_put(bytes, f, next);
	*changed = true;
	return timed_value_write(item, f->offset / 8, str_of(bytes, count));
}

enum status
cmd_bitfield(struct call *c)
{
	bool read_only = c->command->flags & COMMAND_READONLY;
	enum overflow overflow = OVERFLOW_WRAP;
	struct field *fields = arena_alloc(c->arena, c->argc * sizeof(*fields));
	struct timed_item *item;
	bool changed = false, grown, writes = false;
	size_t count = 0;

	if (!fields)
		return STATUS_LIMIT;
	for (size_t i = 2; i < c->argc; i++) {
		bool any;

		TRY(field_read(c, &i, &overflow, &fields[count], &any));
		if (any && read_only && fields[count].kind != FIELD_GET)
			return call_error(c,
					  STR("ERR BITFIELD_RO only supports the GET subcommand"));
		writes |= any && fields[count].kind != FIELD_GET;
		count += any;
	}
	if (writes)
		TRY(data_item(c, 1, TIMED_VALUE, &item));
	else
		TRY(data_item_read(c, 1, TIMED_VALUE, &item));
	reply_array(c->reply, count);
	TRY(fields_make_room(c, item, fields, count, &grown));
	for (size_t i = 0; i < count; i++)
		TRY(field_run(c, item, &fields[i], grown, &changed));
	return changed ? txn_changed(c, c->argv[1], EVENT_STRING, "setbit") : STATUS_OK;
}
