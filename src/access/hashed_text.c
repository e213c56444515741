#include "access/hashed_text.h"

#include "access/auth_int.h"

bool
auth_is_hashed(struct str password)
{
	return str_starts_with(password, STR("-pbkdf2-")) ||
	       str_starts_with(password, STR("-pbkdf2:")) ||
	       str_starts_with(password, STR("-hashed-"));
}

static bool
hash_parse(struct str hex, struct verifier *ret)
{
	const EVP_MD *md = verifier_md(ret->digest);

	ret->hash_len = (size_t)EVP_MD_get_size(md);
	return hex.len == 2 * ret->hash_len && str_from_hex(hex, ret->hash);
}

static bool
salt_parse(struct str salt, struct verifier *ret)
{
	if (salt.len == 0 || salt.len > sizeof(ret->salt))
		return false;
	memcpy(ret->salt, salt.ptr, salt.len);
	ret->salt_len = salt.len;
	return true;
}

bool
hashed_text_parse(struct str text, struct verifier *ret)
{
	struct str scheme, hash, salt;

	*ret = (struct verifier){ .scheme = VERIFIER_PBKDF2, .digest = VERIFIER_SHA1 };
	if (!text.len)
		return false;
	text = str_skip(text, 1);
	if (!auth_cut_at(&text, '-', &scheme) || !auth_cut_at(&text, ',', &hash))
		return false;
	if (str_eq(scheme, STR("hashed"))) {
		ret->scheme = VERIFIER_SIMPLE;
		return hash_parse(hash, ret) && salt_parse(text, ret);
	}
	if (!auth_cut_at(&text, ',', &salt) || !str_to_u64(text, &ret->rounds))
		return false;
	if (!str_eq(scheme, STR("pbkdf2")) &&
	    (!str_starts_with(scheme, STR("pbkdf2:")) ||
	     !verifier_digest_find(str_skip(scheme, strlen("pbkdf2:")), &ret->digest)))
		return false;
	return hash_parse(hash, ret) && salt_parse(salt, ret) && verifier_is_sound(ret);
}

void
hashed_text_write(const struct verifier *v, struct buf *out)
{
	buf_printf(out, "-pbkdf2:%s-", verifier_digest_name(v->digest));
	buf_append_hex(out, str_of(v->hash, v->hash_len));
	buf_printf(out, ",%.*s,%llu", (int)v->salt_len, v->salt, (unsigned long long)v->rounds);
}
