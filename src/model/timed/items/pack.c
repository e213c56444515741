#include "model/timed/items/pack.h"

#include <assert.h>
#include <endian.h>
#include <math.h>

#include "model/timed/items/item_int.h"

enum {
	NUMBER_BITS = 7, /* of a number, in each of its bytes */
	NUMBER_MORE = 1 << NUMBER_BITS,
	NUMBER_MOST_BITS = 64,
	TIME_BYTES = 8,
};

/* ---- Order ---- */

static int
member_cmp(enum timed_type type, const struct timed_pack_member *a,
	   const struct timed_pack_member *b)
{
	if (type == TIMED_ZSET && a->score != b->score)
		return a->score < b->score ? -1 : 1;
	if (type != TIMED_ZSET && a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return str_cmp(a->name, b->name);
}

/* ---- Numbers ---- */

static void
number_put(uint64_t n, struct buf *out)
{
	for (; n >= NUMBER_MORE; n >>= NUMBER_BITS)
		buf_append_byte(out, (uint8_t)(n | NUMBER_MORE));
	buf_append_byte(out, (uint8_t)n);
}

/* False: there is none, or one that is not written in the shortest way. */
static bool
number_take(struct str *rest, uint64_t *ret)
{
	uint64_t n = 0;

	/* Nearly all are short. */
	if (rest->len && !(rest->ptr[0] & NUMBER_MORE)) {
		*ret = (uint8_t)rest->ptr[0];
		*rest = str_skip(*rest, 1);
		return true;
	}
	for (unsigned bits = 0; rest->len && bits < NUMBER_MOST_BITS; bits += NUMBER_BITS) {
		uint8_t byte = (uint8_t)rest->ptr[0];

		*rest = str_skip(*rest, 1);
		if (bits > NUMBER_MOST_BITS - NUMBER_BITS && byte > 1)
			return false;
		n |= (uint64_t)(byte & (NUMBER_MORE - 1)) << bits;
		if (byte & NUMBER_MORE)
			continue;
		*ret = n;
		return byte || !bits;
	}
	return false;
}

static bool
bytes_take(struct str *rest, uint64_t len, struct str *ret)
{
	if (len > rest->len)
		return false;
	*ret = str_of(rest->ptr, (size_t)len);
	*rest = str_skip(*rest, (size_t)len);
	return true;
}

static bool
time_take(struct str *rest, uint64_t *ret)
{
	struct str bytes;

	if (!bytes_take(rest, TIME_BYTES, &bytes))
		return false;
	memcpy(ret, bytes.ptr, sizeof(*ret));
	*ret = be64toh(*ret);
	return true;
}

/* ---- The bytes ---- */

static void
member_put(enum timed_type type, const struct timed_pack_member *m, uint64_t least_us,
	   struct buf *out)
{
	uint8_t score[TIMED_SCORE_BYTES];

	if (type == TIMED_ZSET) {
		timed_score_put(m->score, score);
		buf_append(out, score, sizeof(score));
	} else {
		buf_append_byte(out, (uint8_t)(m->hash >> 8));
		buf_append_byte(out, (uint8_t)m->hash);
	}
	number_put(m->write_us - least_us, out);
	number_put(m->name.len, out);
	if (type == TIMED_HASH)
		number_put(m->value.len, out);
	buf_append_str(out, m->name);
	if (type == TIMED_HASH)
		buf_append_str(out, m->value);
}

void
timed_pack_put(const struct timed_pack *pack, struct buf *out)
{
	uint64_t least_us = UINT64_MAX, bytes;

	for (size_t i = 0; i < pack->count; i++)
		if (pack->members[i].write_us < least_us)
			least_us = pack->members[i].write_us;
	bytes = htobe64(least_us);
	buf_append(out, &bytes, sizeof(bytes));
	for (size_t i = 0; i < pack->count; i++)
		member_put(pack->type, &pack->members[i], least_us, out);
}

static bool
member_take(enum timed_type type, struct str *rest, uint64_t least_us,
	    struct timed_pack_member *ret)
{
	struct timed_pack_member m = { .value = STR("") };
	uint64_t age, name, value = 0;
	struct str place;

	if (!bytes_take(rest, type == TIMED_ZSET ? TIMED_SCORE_BYTES : TIMED_HASH_BYTES, &place))
		return false;
	if (type == TIMED_ZSET)
		m.score = timed_score_get((const uint8_t *)place.ptr);
	else
		m.hash = (uint16_t)((uint8_t)place.ptr[0] << 8 | (uint8_t)place.ptr[1]);
	if (isnan(m.score) || !number_take(rest, &age) || age > UINT64_MAX - least_us ||
	    !number_take(rest, &name) || name > TIMED_WHOLE_BYTES ||
	    (type == TIMED_HASH && !number_take(rest, &value)) ||
	    !bytes_take(rest, name, &m.name) || !bytes_take(rest, value, &m.value))
		return false;
	m.write_us = least_us + age;
	*ret = m;
	return true;
}

enum status
timed_pack_parse(enum timed_type type, struct str bytes, struct timed_pack *ret)
{
	struct str rest = bytes;
	bool has_least = false;
	uint64_t least_us;

	ret->type = type;
	ret->count = 0;
	if (!timed_pack_has(type) || bytes.len > TIMED_PACK_BYTES || !time_take(&rest, &least_us))
		return STATUS_CORRUPT;
	while (rest.len) {
		struct timed_pack_member *m = &ret->members[ret->count];

		if (ret->count == TIMED_PACK_MEMBERS || !member_take(type, &rest, least_us, m) ||
		    (ret->count && member_cmp(type, m - 1, m) >= 0))
			return STATUS_CORRUPT;
		has_least |= m->write_us == least_us;
		ret->count++;
	}
	return has_least ? STATUS_OK : STATUS_CORRUPT;
}

bool
timed_pack_is_sound(const struct timed_pack *pack)
{
	for (size_t i = 0; i < pack->count; i++) {
		const struct timed_pack_member *m = &pack->members[i];

		if (pack->type != TIMED_ZSET && timed_hash16(m->name) != m->hash)
			return false;
		for (size_t j = 0; j < i; j++)
			if (str_eq(pack->members[j].name, m->name))
				return false;
	}
	return true;
}

/* ---- Members ---- */

struct timed_pack_member *
timed_pack_find(struct timed_pack *pack, struct str name)
{
	uint16_t hash = pack->type == TIMED_ZSET ? 0 : timed_hash16(name);

	for (size_t i = 0; i < pack->count; i++) {
		struct timed_pack_member *m = &pack->members[i];

		if (m->hash == hash && str_eq(m->name, name))
			return m;
		if (m->hash > hash)
			break;
	}
	return NULL;
}

bool
timed_pack_add(struct timed_pack *pack, const struct timed_pack_member *member)
{
	struct timed_pack_member m = *member;
	size_t at = pack->count;

	if (pack->count == TIMED_PACK_MEMBERS || m.name.len > TIMED_WHOLE_BYTES ||
	    m.value.len > TIMED_PACK_BYTES)
		return false;
	m.hash = pack->type == TIMED_ZSET ? 0 : timed_hash16(m.name);
	while (at && member_cmp(pack->type, &m, &pack->members[at - 1]) < 0)
		at--;
	memmove(&pack->members[at + 1], &pack->members[at],
		(pack->count - at) * sizeof(pack->members[0]));
	pack->members[at] = m;
	pack->count++;
	return true;
}

void
timed_pack_remove(struct timed_pack *pack, struct timed_pack_member *member)
{
	size_t at = (size_t)(member - pack->members);

	assert(at < pack->count);
	pack->count--;
	memmove(member, member + 1, (pack->count - at) * sizeof(*member));
}

size_t
timed_pack_rank(const struct timed_pack *pack, struct str order)
{
	size_t rank = 0;

	for (; rank < pack->count; rank++) {
		const struct timed_pack_member *m = &pack->members[rank];
		uint8_t score[TIMED_SCORE_BYTES];
		struct str own = str_of(score, sizeof(score));
		int cmp;

		timed_score_order(m->score, score);
		cmp = str_cmp(own, str_of(order.ptr, order.len < own.len ? order.len : own.len));
		if (cmp > 0 || (!cmp && str_cmp(m->name, str_skip(order, own.len)) >= 0))
			break;
	}
	return rank;
}
