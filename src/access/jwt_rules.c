/* What the settings say of tokens. */
#include "access/jwt_int.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/quote.h"

enum {
	/* All texts of the settings that rules are made of. */
	RULES_BYTES = (JWT_KEYS_LIMIT + 8) * 2 * JWT_KEY_BYTES,
};

static const char *const claim_names[JWT_CLAIM_COUNT] = {
	[JWT_CLAIM_ALG] = "alg", [JWT_CLAIM_EXP] = "exp", [JWT_CLAIM_IAT] = "iat",
	[JWT_CLAIM_ISS] = "iss", [JWT_CLAIM_KID] = "kid", [JWT_CLAIM_NBF] = "nbf",
	[JWT_CLAIM_SIG] = "sig", [JWT_CLAIM_TYP] = "typ",
};

/* Moves what comes before the next `c`, or all, from `s` to `*ret`, without spaces around it. */
static void
take_until(struct str *s, char c, struct str *ret)
{
	const char *at = s->len ? memchr(s->ptr, c, s->len) : NULL;
	size_t n = at ? (size_t)(at - s->ptr) : s->len;

	*ret = str_trim(str_of(s->ptr, n));
	*s = str_skip(*s, at ? n + 1 : n);
}

static enum status
required_fail(struct str what, struct err *err)
{
	return err_set(err, STATUS_INVALID,
		       "[jwt_auth] required_claims: \"%s\" is none of alg, exp, iat, {iss, "
		       "\"ISSUER\"}, kid, nbf, sig, typ",
		       QUOTE_SHOW(what));
}

/* {iss, "ISSUER"}, without its first bracket, which has been read. */
static enum status
issuer_read(struct jwt_rules *rules, struct str *rest, struct err *err)
{
	struct str name, value;

	take_until(rest, ',', &name);
	if (!str_eq(name, STR("iss")))
		return required_fail(name, err);
	take_until(rest, '"', &value);
	if (value.len)
		return required_fail(value, err);
	take_until(rest, '"', &value);
	rules->issuer = arena_dup(rules->arena, value);
	if (!rules->issuer.ptr)
		return STATUS_NOMEM;
	if (!value.len || !memchr(rest->ptr, '}', rest->len))
		return required_fail(*rest, err);
	take_until(rest, '}', &name);
	if (name.len)
		return required_fail(name, err);
	take_until(rest, ',', &name);
	return name.len ? required_fail(name, err) : STATUS_OK;
}

static enum status
required_read(struct jwt_rules *rules, struct str rest, struct err *err)
{
	for (rest = str_trim(rest); rest.len; rest = str_trim(rest)) {
		struct str name;
		size_t i = 0;

		if (rest.ptr[0] == '{') {
			rest = str_skip(rest, 1);
			TRY(issuer_read(rules, &rest, err));
			continue;
		}
		take_until(&rest, ',', &name);
		while (i < JWT_CLAIM_COUNT && !str_eq(name, str_from_cstr(claim_names[i])))
			i++;
		/* Which issuer, the setting has to say. */
		if (i == JWT_CLAIM_COUNT || i == JWT_CLAIM_ISS)
			return required_fail(name, err);
		rules->required[i] = true;
	}
	return STATUS_OK;
}

static enum status
algorithms_read(struct jwt_rules *rules, const char *text, struct err *err)
{
	struct str rest = text ? str_from_cstr(text) : (struct str){ 0 };

	for (size_t i = 0; i < JWT_ALGS; i++)
		rules->allowed[i] = !text;
	while (rest.len) {
		struct str name;
		size_t i;

		take_until(&rest, ',', &name);
		i = jwt_alg_find(name);
		if (i == JWT_ALGS)
			return err_set(err, STATUS_INVALID,
				       "[jwt_auth] algorithms: \"%s\" is none of HS256, HS384, "
				       "HS512, RS256, RS384, RS512, ES256, ES384, ES512, EdDSA",
				       QUOTE_SHOW(name));
		rules->allowed[i] = true;
	}
	return STATUS_OK;
}

static enum status
path_add(struct jwt_rules *rules, struct str name, struct err *err)
{
	if (rules->roles_path_count == JWT_PATH_LIMIT)
		return err_set(err, STATUS_INVALID,
			       "[jwt_auth] roles_claim_path: more than %d names", JWT_PATH_LIMIT);
	name = arena_dup(rules->arena, name);
	if (!name.ptr)
		return STATUS_NOMEM;
	rules->roles_path[rules->roles_path_count++] = name;
	return STATUS_OK;
}

/* "a.b\.c" is the member "b.c" of the member "a". */
static enum status
path_read(struct jwt_rules *rules, struct str path, struct err *err)
{
	AUTO(buf_release) struct buf name = BUF_INIT(JWT_KEY_BYTES);

	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] == '.') {
			TRY(path_add(rules, buf_str(&name), err));
			buf_clear(&name);
			continue;
		}
		if (path.ptr[i] == '\\' && i + 1 < path.len && path.ptr[i + 1] == '.')
			i++;
		buf_append_byte(&name, (uint8_t)path.ptr[i]);
	}
	TRY(buf_status(&name));
	return path_add(rules, buf_str(&name), err);
}

static void
append_choice(struct buf *all, const char *text)
{
	buf_append_byte(all, text != NULL);
	if (text)
		buf_append(all, text, strlen(text) + 1);
}

/* Of the choices, and of the ids of all keys. */
static enum status
rules_make_id(struct jwt_rules *rules, const struct jwt_choices *choices)
{
	AUTO(buf_release) struct buf all = BUF_INIT(RULES_BYTES);

	append_choice(&all, choices->required_claims);
	append_choice(&all, choices->roles_name);
	append_choice(&all, choices->roles_path);
	append_choice(&all, choices->algorithms);
	for (size_t i = 0; i < rules->keys_count; i++)
		buf_append(&all, rules->keys[i].id, sizeof(rules->keys[i].id));
	TRY(buf_status(&all));
	return jwt_digest(buf_str(&all), rules->id);
}

static enum status
rules_read(struct jwt_rules *rules, const struct jwt_choices *choices,
	   const struct jwt_key_text *keys, size_t keys_count, struct err *err)
{
	if (keys_count > JWT_KEYS_LIMIT)
		return err_set(err, STATUS_LIMIT, "[jwt_keys] has more than %d keys",
			       JWT_KEYS_LIMIT);
	for (size_t i = 0; i < keys_count; i++) {
		TRY(jwt_key_read(&keys[i], rules->arena, &rules->keys[i], err));
		rules->keys_count = i + 1;
	}
	if (choices->required_claims)
		TRY(required_read(rules, str_from_cstr(choices->required_claims), err));
	TRY(algorithms_read(rules, choices->algorithms, err));
	rules->roles_required = choices->roles_path != NULL;
	if (choices->roles_path)
		TRY(path_read(rules, str_from_cstr(choices->roles_path), err));
	else if (choices->roles_name)
		TRY(path_add(rules, str_from_cstr(choices->roles_name), err));
	return rules_make_id(rules, choices);
}

enum status
jwt_rules_new(const struct jwt_choices *choices, const struct jwt_key_text *keys, size_t keys_count,
	      struct jwt_rules **ret, struct err *err)
{
	struct jwt_rules *rules = mem_zalloc(sizeof(*rules));
	enum status status = STATUS_NOMEM;

	if (rules)
		rules->arena = arena_new(RULES_BYTES);
	if (rules && rules->arena)
		status = rules_read(rules, choices, keys, keys_count, err);
	if (status != STATUS_OK) {
		jwt_rules_free(rules);
		return status == STATUS_NOMEM ? err_set(err, status, "out of memory") : status;
	}
	*ret = rules;
	return STATUS_OK;
}

void
jwt_rules_free(struct jwt_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->keys_count; i++)
		jwt_key_release(&rules->keys[i]);
	arena_free(rules->arena);
	mem_free(rules);
}

const uint8_t *
jwt_rules_id(const struct jwt_rules *rules)
{
	return rules->id;
}

bool
jwt_rules_have_key(const struct jwt_rules *rules, const uint8_t id[JWT_ID_BYTES])
{
	for (size_t i = 0; i < rules->keys_count; i++)
		if (memcmp(rules->keys[i].id, id, JWT_ID_BYTES) == 0)
			return true;
	return false;
}
