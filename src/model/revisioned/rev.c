/*
 * The one-shot and incremental calls of libcrypto's EVP allocate and can fail, which a name for a
 * revision should not; MD5 here is no protection, it only has to be the same as CouchDB's.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

#include "base/utf8.h"
#include "kv/keyspace.h"
#include "loop/step.h"
#include "model/revisioned/revision.h"
#include "model/revisioned/revisioned_int.h"

enum {
	HASH_HEX_BYTES = 2 * REV_HASH_BYTES,
	ASCII_DELETE = 0x7f,
	HASH_PIECE_BYTES = 16 * 1024, /* hashed without counting steps */
	HASH_BYTES_A_STEP = 32,
};

_Static_assert(REV_HASH_BYTES == MD5_DIGEST_LENGTH, "a revision's hash is an MD5");

static enum status
rev_invalid(struct err *err)
{
	return err_set(err, STATUS_INVALID, "Invalid rev format");
}

/* True if the text can stand between the quotes of an ETag, which RFC 9110 calls etagc. */
static bool
hash_fits_etag(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = (uint8_t)text.ptr[i];

		if (c <= ' ' || c == '"' || c == ASCII_DELETE)
			return false;
	}
	return true;
}

enum status
rev_hash_parse(struct str text, struct arena *arena, struct str *ret)
{
	char raw[REV_HASH_BYTES];

	if (text.len == HASH_HEX_BYTES) {
		if (!str_from_hex(text, raw))
			return STATUS_INVALID;
		text = str_of(raw, sizeof(raw));
	} else if (text.len > REV_HASH_LIMIT_BYTES || !hash_fits_etag(text) ||
		   utf8_valid_prefix(text) != text.len) {
		return STATUS_INVALID;
	}
	*ret = arena_dup(arena, text);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_id_parse(struct str text, struct arena *arena, struct rev_id *ret, struct err *err)
{
	struct str suffix = text, number = str_cut(&suffix, '-'), hash;
	enum status status;
	uint64_t pos;

	/* Without a dash all of it is the number. */
	if (number.len == text.len || !str_to_u64(number, &pos) || pos > INT64_MAX - 1)
		return rev_invalid(err);
	status = rev_hash_parse(suffix, arena, &hash);
	if (status == STATUS_INVALID)
		return rev_invalid(err);
	TRY(status);
	*ret = (struct rev_id){ pos, hash };
	return STATUS_OK;
}

void
rev_id_write(struct rev_id rev, struct buf *ret)
{
	buf_append_u64(ret, rev.pos);
	buf_append_byte(ret, '-');
	if (rev.hash.len == REV_HASH_BYTES)
		buf_append_hex(ret, rev.hash);
	else
		buf_append_str(ret, rev.hash);
}

bool
rev_id_eq(struct rev_id a, struct rev_id b)
{
	return a.pos == b.pos && str_eq(a.hash, b.hash);
}

int
rev_id_cmp(bool a_not_deleted, struct rev_id a, bool b_not_deleted, struct rev_id b)
{
	if (a_not_deleted != b_not_deleted)
		return a_not_deleted ? 1 : -1;
	if (a.pos != b.pos)
		return a.pos > b.pos ? 1 : -1;
	return str_cmp(a.hash, b.hash);
}

/* ---- Erlang's external term format, as far as a revision needs it ---- */

enum {
	ETF_VERSION = 131,
	ETF_SMALL_INTEGER = 97,
	ETF_INTEGER = 98,
	ETF_ATOM = 100,
	ETF_SMALL_TUPLE = 104,
	ETF_NIL = 106,
	ETF_LIST = 108,
	ETF_BINARY = 109,
	ETF_SMALL_BIG = 110,
};

static size_t
etf_u32(uint8_t *to, uint8_t tag, uint32_t n)
{
	to[0] = tag;
	for (int i = 0; i < 4; i++)
		to[1 + i] = (uint8_t)(n >> (8 * (3 - i)));
	return 5;
}

/* At most 11 bytes. */
static size_t
etf_integer(uint8_t *to, uint64_t n)
{
	uint8_t digits = 0;

	if (n <= UINT8_MAX) {
		to[0] = ETF_SMALL_INTEGER;
		to[1] = (uint8_t)n;
		return 2;
	}
	if (n <= INT32_MAX)
		return etf_u32(to, ETF_INTEGER, (uint32_t)n);
	to[0] = ETF_SMALL_BIG;
	to[2] = 0; /* the sign */
	for (; n; n >>= 8)
		to[3 + digits++] = (uint8_t)n;
	to[1] = digits;
	return 3 + (size_t)digits;
}

static size_t
etf_bool(uint8_t *to, bool value)
{
	struct str name = value ? STR("true") : STR("false");

	to[0] = ETF_ATOM;
	to[1] = 0;
	to[2] = (uint8_t)name.len;
	memcpy(to + 3, name.ptr, name.len);
	return 3 + name.len;
}

static void
hash_binary(MD5_CTX *md5, const void *bytes, size_t n)
{
	uint8_t head[5];

	MD5_Update(md5, head, etf_u32(head, ETF_BINARY, (uint32_t)n));
	MD5_Update(md5, bytes, n);
}

/* The term of a large body takes milliseconds, so other fibers run between its pieces. */
static void
hash_term(MD5_CTX *md5, struct str term)
{
	while (term.len) {
		size_t n = term.len < HASH_PIECE_BYTES ? term.len : HASH_PIECE_BYTES;

		MD5_Update(md5, term.ptr, n);
		term = str_skip(term, n);
		if (term.len)
			step_pause(HASH_PIECE_BYTES / HASH_BYTES_A_STEP);
	}
}

/* [{Name, Type, Digest}…], the last one first. */
static void
hash_atts(MD5_CTX *md5, const struct rev_att *atts, size_t count)
{
	static const uint8_t triple[] = { ETF_SMALL_TUPLE, 3 };
	static const uint8_t end[] = { ETF_NIL };
	uint8_t head[5];

	if (count)
		MD5_Update(md5, head, etf_u32(head, ETF_LIST, (uint32_t)count));
	for (size_t i = count; i-- > 0;) {
		MD5_Update(md5, triple, sizeof(triple));
		hash_binary(md5, atts[i].name.ptr, atts[i].name.len);
		hash_binary(md5, atts[i].type.ptr, atts[i].type.len);
		hash_binary(md5, atts[i].digest, sizeof(atts[i].digest));
	}
	MD5_Update(md5, end, sizeof(end));
}

void
rev_hash_atts(bool deleted, struct rev_id parent, struct str term, const struct rev_att *atts,
	      size_t atts_count, uint8_t ret[REV_HASH_BYTES])
{
	static const uint8_t no_members[] = { ETF_SMALL_TUPLE, 1, ETF_NIL };
	static const uint8_t end[] = { ETF_NIL };
	uint8_t head[64];
	size_t n = 0;
	MD5_CTX md5;

	head[n++] = ETF_VERSION;
	n += etf_u32(head + n, ETF_LIST, 5);
	n += etf_bool(head + n, deleted);
	n += etf_integer(head + n, parent.pos);
	if (!parent.pos)
		n += etf_integer(head + n, 0);

	MD5_Init(&md5);
	MD5_Update(&md5, head, n);
	if (parent.pos)
		hash_binary(&md5, parent.hash.ptr, parent.hash.len);
	if (term.len)
		hash_term(&md5, term);
	else
		MD5_Update(&md5, no_members, sizeof(no_members));
	hash_atts(&md5, atts, atts_count);
	MD5_Update(&md5, end, sizeof(end));
	MD5_Final(ret, &md5);
}

void
rev_hash(bool deleted, struct rev_id parent, struct str term, uint8_t ret[REV_HASH_BYTES])
{
	rev_hash_atts(deleted, parent, term, NULL, 0, ret);
}
