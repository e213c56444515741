/* What all of the format is made of: lengths, strings, numbers, and what modules write. */
#include "rdb/value_int.h"

#include "loop/step.h"
#include "rdb/lzf.h"

enum {
	LENGTH_32 = 0x80,
	LENGTH_64 = 0x81,
	STRING_LZF = 3,
};

static enum status
take(struct rdb_input *in, size_t n, struct str *ret)
{
	return bytes_take(&in->rest, n, ret) ? STATUS_OK : rdb_invalid(in, "it ends too early");
}

/* A length; or, where `*ret_special` is set, what a string is encoded as. */
static enum status
length_read(struct rdb_input *in, uint64_t *ret, bool *ret_special)
{
	struct str s;
	unsigned code;

	TRY(take(in, 1, &s));
	code = (uint8_t)s.ptr[0];
	*ret = code & 0x3f;
	*ret_special = code >> 6 == 3;
	if (code >> 6 == 0 || *ret_special)
		return STATUS_OK;
	if (code >> 6 == 1) {
		TRY(take(in, 1, &s));
		*ret = *ret << 8 | (uint8_t)s.ptr[0];
		return STATUS_OK;
	}
	if (code != LENGTH_32 && code != LENGTH_64)
		return rdb_invalid(in, "a length has an unknown form");
	TRY(take(in, code == LENGTH_32 ? 4 : 8, &s));
	*ret = bytes_be(s);
	return STATUS_OK;
}

enum status
rdb_read_length(struct rdb_input *in, uint64_t *ret)
{
	bool special;

	TRY(length_read(in, ret, &special));
	return special ? rdb_invalid(in, "a length is the form of a string") : STATUS_OK;
}

enum status
rdb_read_number(struct rdb_input *in, unsigned bytes, uint64_t *ret)
{
	struct str s;

	TRY(take(in, bytes, &s));
	*ret = bytes_le(s);
	return STATUS_OK;
}

enum status
rdb_read_double(struct rdb_input *in, double *ret)
{
	uint64_t bits;

	TRY(rdb_read_number(in, 8, &bits));
	memcpy(ret, &bits, sizeof(*ret));
	return STATUS_OK;
}

static enum status
compressed_read(struct rdb_input *in, struct str *ret)
{
	uint64_t packed, len;
	enum status status;
	struct str bytes;
	char *out;

	TRY(rdb_read_length(in, &packed));
	TRY(rdb_read_length(in, &len));
	if (packed > in->rest.len || len > packed * LZF_RATIO)
		return rdb_invalid(in, "a compressed string has an impossible length");
	TRY(take(in, (size_t)packed, &bytes));
	out = arena_bytes(in->arena, (size_t)len + 1);
	if (!out)
		return STATUS_LIMIT;
	*ret = str_of(out, (size_t)len);
	status = rdb_lzf_expand(bytes, out, (size_t)len);
	return status == STATUS_INVALID ? rdb_invalid(in, "a compressed string is damaged")
					: status;
}

enum status
rdb_read_string(struct rdb_input *in, struct str *ret)
{
	uint64_t len, n;
	bool special;

	TRY(length_read(in, &len, &special));
	if (!special && len > in->rest.len)
		return rdb_invalid(in, "a string is longer than what there is");
	if (!special)
		return take(in, (size_t)len, ret);
	if (len == STRING_LZF)
		return compressed_read(in, ret);
	if (len > STRING_LZF)
		return rdb_invalid(in, "a string has an unknown form");
	TRY(rdb_read_number(in, 1u << len, &n));
	*ret = arena_printf(in->arena, "%lld", (long long)bytes_sign(n, 8u << len));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Modules ---- */

/* Skips what a module has written, up to its end. */
enum status
rdb_module_skip(struct rdb_input *in)
{
	enum {
		END = 0,
		SIGNED = 1,
		UNSIGNED = 2,
		FLOAT = 3,
		DOUBLE = 4,
		STRING = 5
	};
	uint64_t opcode, n;
	struct str ignored;

	for (;;) {
		struct arena_mark mark = arena_mark(in->arena);

		TRY(step_count(1));
		TRY(rdb_read_length(in, &opcode));
		switch (opcode) {
		case END:
			return STATUS_OK;
		case SIGNED:
		case UNSIGNED:
			TRY(rdb_read_length(in, &n));
			break;
		case FLOAT:
			TRY(rdb_read_number(in, 4, &n));
			break;
		case DOUBLE:
			TRY(rdb_read_number(in, 8, &n));
			break;
		case STRING:
			TRY(rdb_read_string(in, &ignored));
			break;
		default:
			return rdb_invalid(in, "a module's value has an unknown form");
		}
		arena_reset(in->arena, mark);
	}
}
