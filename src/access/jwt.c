/* Reading and checking a token. */
#include <math.h>
#include <stdlib.h>

#include "access/jwt_int.h"
#include "base/base64.h"
#include "base/quote.h"
#include "doc/json_value.h"
#include "loop/wait.h"

enum {
	TOKEN_PARTS = 3,
	NUMBER_BYTES = 64, /* of a moment's text */
};

#define MALFORMED_TEXT "Malformed token"

/* A token while it is checked. */
struct token {
	const struct jwt_rules *rules;
	struct arena *arena;
	struct err *err;
	double now_s;
	struct str message; /* header and claims as they were signed */
	struct str header, payload, signature;
	struct json_member *head;
	size_t head_count;
	struct json_member *claims;
	size_t claims_count;
	const struct jwt_alg *alg;
	const struct jwt_key *key;
};

static enum status
jwt_refuse(struct token *t, const char *text)
{
	return err_set(t->err, STATUS_INVALID, "%s", text);
}

static enum status
no_room(struct token *t)
{
	return err_set(t->err, STATUS_LIMIT, "out of the request's memory");
}

/* ---- Taking it apart ---- */

static enum status
token_split(struct token *t, struct str text)
{
	const char *first = memchr(text.ptr, '.', text.len);
	const char *last = memrchr(text.ptr, '.', text.len);
	size_t head, message;

	if (!first || first == last)
		return jwt_refuse(t, MALFORMED_TEXT);
	head = (size_t)(first - text.ptr);
	message = (size_t)(last - text.ptr);
	t->message = str_of(text.ptr, message);
	t->header = str_of(text.ptr, head);
	t->payload = str_of(first + 1, message - head - 1);
	t->signature = str_skip(text, message + 1);
	return memchr(t->payload.ptr, '.', t->payload.len) ? jwt_refuse(t, MALFORMED_TEXT)
							   : STATUS_OK;
}

static enum status
part_decode(struct token *t, struct str part, struct str *ret)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(JWT_TOKEN_BYTES);
	enum status status = base64_decode(&bytes, part, BASE64_URL);

	if (status == STATUS_NOMEM)
		return err_set(t->err, status, "out of memory");
	if (status != STATUS_OK)
		return jwt_refuse(t, MALFORMED_TEXT);
	*ret = buf_dup(&bytes, t->arena);
	return ret->ptr ? STATUS_OK : no_room(t);
}

/* Brackets outside of strings. The text need not be JSON. */
static bool
depth_is_fine(struct str text)
{
	bool in_string = false;
	size_t depth = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '{' || c == '[') && ++depth > JWT_DEPTH_LIMIT)
			return false;
		else if (!in_string && (c == '}' || c == ']') && depth)
			depth--;
	}
	return true;
}

static enum status
part_members(struct token *t, struct str part, struct json_member **ret, size_t *ret_count)
{
	struct json_value value;
	enum status status;
	struct str text;

	TRY(part_decode(t, part, &text));
	if (!depth_is_fine(text))
		return jwt_refuse(t, MALFORMED_TEXT);
	status = json_value_read(text, t->arena, &value, NULL);
	if (status == STATUS_LIMIT)
		return no_room(t);
	if (status == STATUS_NOMEM)
		return err_set(t->err, status, "out of memory");
	if (status != STATUS_OK)
		return jwt_refuse(t, MALFORMED_TEXT);
	if (value.kind != JSON_OBJECT_BEGIN)
		return jwt_refuse(t, "Not an object");
	if (json_value_members(&value, t->arena, ret, ret_count, NULL) != STATUS_OK)
		return no_room(t);
	return STATUS_OK;
}

static bool
value_is(const struct json_value *value, const char *text)
{
	return value->kind == JSON_STRING && str_eq(value->string, str_from_cstr(text));
}

/* ---- The header ---- */

static enum status
header_check(struct token *t)
{
	const struct json_value *typ = json_value_find(t->head, t->head_count, "typ");
	const struct json_value *alg = json_value_find(t->head, t->head_count, "alg");
	size_t i;

	if (!typ && t->rules->required[JWT_CLAIM_TYP])
		return jwt_refuse(t, "Missing typ header parameter");
	if (typ && !value_is(typ, "JWT"))
		return jwt_refuse(t, "Invalid typ header parameter");
	if (!alg)
		return jwt_refuse(t, "Missing alg header parameter");
	i = alg->kind == JSON_STRING ? jwt_alg_find(alg->string) : JWT_ALGS;
	if (i == JWT_ALGS || !t->rules->allowed[i])
		return jwt_refuse(t, "Invalid alg header parameter");
	t->alg = &jwt_algs[i];
	/* Names what the reader must understand, and this one understands nothing of the kind. */
	if (json_value_find(t->head, t->head_count, "crit"))
		return jwt_refuse(t, "Invalid crit header parameter");
	return STATUS_OK;
}

static enum status
key_find(struct token *t)
{
	const struct json_value *kid = json_value_find(t->head, t->head_count, "kid");
	struct str name = STR("_default");

	if (!kid && t->rules->required[JWT_CLAIM_KID])
		return jwt_refuse(t, "Missing kid claim");
	if (kid) {
		if (kid->kind != JSON_STRING)
			return jwt_refuse(t, "Unknown kid");
		name = kid->string;
	}
	for (size_t i = 0; i < t->rules->keys_count; i++) {
		const struct jwt_key *key = &t->rules->keys[i];

		if (key->kind == t->alg->kind && str_eq(key->kid, name)) {
			t->key = key;
			return STATUS_OK;
		}
	}
	return jwt_refuse(t, "Unknown kid");
}

/* ---- The claims ---- */

static bool
moment_read(const struct json_value *value, double *ret)
{
	char text[NUMBER_BYTES];

	if (value->kind != JSON_NUMBER || value->text.len >= sizeof(text))
		return false;
	memcpy(text, value->text.ptr, value->text.len);
	text[value->text.len] = '\0';
	*ret = strtod(text, NULL);
	return isfinite(*ret);
}

static enum status
issued_check(struct token *t)
{
	const struct json_value *iss = json_value_find(t->claims, t->claims_count, "iss");
	const struct json_value *iat = json_value_find(t->claims, t->claims_count, "iat");

	if (t->rules->issuer.ptr) {
		if (!iss)
			return jwt_refuse(t, "Missing iss claim");
		if (iss->kind != JSON_STRING || !str_eq(iss->string, t->rules->issuer))
			return jwt_refuse(t, "Invalid iss claim");
	}
	if (!t->rules->required[JWT_CLAIM_IAT])
		return STATUS_OK;
	if (!iat)
		return jwt_refuse(t, "Missing iat claim");
	if (iat->kind != JSON_NUMBER || !iat->is_integer)
		return jwt_refuse(t, "Invalid iat claim");
	return STATUS_OK;
}

/* What a token says of its time holds also where the settings do not require it to. */
static enum status
time_check(struct token *t, uint64_t *ret_until_s)
{
	const struct json_value *nbf = json_value_find(t->claims, t->claims_count, "nbf");
	const struct json_value *exp = json_value_find(t->claims, t->claims_count, "exp");
	double at;

	if (!nbf && t->rules->required[JWT_CLAIM_NBF])
		return jwt_refuse(t, "Missing nbf claim");
	if (nbf && !moment_read(nbf, &at))
		return jwt_refuse(t, "Invalid nbf claim");
	if (nbf && at > t->now_s)
		return err_set(t->err, STATUS_UNAUTHORIZED, "nbf not in past");
	if (!exp && t->rules->required[JWT_CLAIM_EXP])
		return jwt_refuse(t, "Missing exp claim");
	*ret_until_s = JWT_FOR_EVER;
	if (!exp)
		return STATUS_OK;
	if (!moment_read(exp, &at))
		return jwt_refuse(t, "Invalid exp claim");
	if (at <= t->now_s)
		return err_set(t->err, STATUS_UNAUTHORIZED, "exp not in future");
	if (at < 0x1p63)
		*ret_until_s = (uint64_t)ceil(at);
	return STATUS_OK;
}

static enum status
roles_missing(struct token *t, const char *words, struct str name)
{
	if (!t->rules->roles_required)
		return STATUS_OK;
	return err_set(t->err, STATUS_NOT_FOUND, "%s%s", words, QUOTE_SHOW(name));
}

/* The value that the path leads to; false: there is none, and the token does not need one. */
static enum status
roles_find(struct token *t, struct json_value *ret, bool *ret_there)
{
	struct json_member *members = t->claims;
	size_t count = t->claims_count;

	*ret_there = false;
	for (size_t i = 0; i < t->rules->roles_path_count; i++) {
		const struct json_value *value = json_value_find(members, count,
								 t->rules->roles_path[i].ptr);

		if (!value)
			return roles_missing(t, "missing json key: ", t->rules->roles_path[i]);
		*ret = *value;
		if (i + 1 == t->rules->roles_path_count)
			break;
		if (ret->kind != JSON_OBJECT_BEGIN)
			return roles_missing(t, "json_mismatch", STR(""));
		if (json_value_members(ret, t->arena, &members, &count, NULL) != STATUS_OK)
			return no_room(t);
	}
	*ret_there = t->rules->roles_path_count > 0;
	return STATUS_OK;
}

static enum status
roles_take(struct token *t, struct str role, struct jwt_claims *ret)
{
	if (ret->roles_count == JWT_ROLES_LIMIT)
		return err_set(t->err, STATUS_INVALID, "A token has at most %d roles.",
			       JWT_ROLES_LIMIT);
	ret->roles[ret->roles_count++] = role;
	return STATUS_OK;
}

/* "a, b": CouchDB drops what is empty at the end. */
static enum status
roles_split(struct token *t, struct str text, struct jwt_claims *ret)
{
	while (text.len) {
		const char *at = memchr(text.ptr, ',', text.len);
		size_t n = at ? (size_t)(at - text.ptr) : text.len;

		TRY(roles_take(t, str_trim(str_of(text.ptr, n)), ret));
		text = str_skip(text, at ? n + 1 : n);
	}
	while (ret->roles_count && !ret->roles[ret->roles_count - 1].len)
		ret->roles_count--;
	return STATUS_OK;
}

static enum status
roles_read(struct token *t, struct jwt_claims *ret)
{
	struct json_value roles;
	struct json_value *items;
	size_t count;
	bool there;

	ret->roles_count = 0;
	ret->roles = arena_alloc(t->arena, JWT_ROLES_LIMIT * sizeof(*ret->roles));
	if (!ret->roles)
		return no_room(t);
	TRY(roles_find(t, &roles, &there));
	if (!there)
		return STATUS_OK;
	if (roles.kind == JSON_STRING)
		return roles_split(t, roles.string, ret);
	if (roles.kind != JSON_ARRAY_BEGIN)
		return jwt_refuse(t, MALFORMED_TEXT);
	if (json_value_items(&roles, t->arena, &items, &count, NULL) != STATUS_OK)
		return no_room(t);
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind != JSON_STRING)
			return jwt_refuse(t, MALFORMED_TEXT);
		TRY(roles_take(t, items[i].string, ret));
	}
	return STATUS_OK;
}

static enum status
name_read(struct token *t, struct jwt_claims *ret)
{
	const struct json_value *sub = json_value_find(t->claims, t->claims_count, "sub");

	/* An empty name would be nobody's. */
	if (!sub || (sub->kind == JSON_STRING && !sub->string.len))
		return err_set(t->err, STATUS_UNAUTHORIZED, "Token missing sub claim.");
	if (sub->kind != JSON_STRING)
		return jwt_refuse(t, MALFORMED_TEXT);
	if (sub->string.len > JWT_NAME_BYTES)
		return err_set(t->err, STATUS_INVALID, "The sub claim has at most %d bytes.",
			       JWT_NAME_BYTES);
	ret->name = sub->string;
	return STATUS_OK;
}

/* ---- The signature ---- */

struct verify_work {
	const struct token *token;
	struct str signature;
	bool right;
};

static void
verify_work(void *arg)
{
	struct verify_work *w = arg;

	w->right = jwt_key_verify(w->token->key, w->token->alg, w->token->message, w->signature);
}

static enum status
signature_check(struct token *t)
{
	struct verify_work w = { .token = t };

	TRY(part_decode(t, t->signature, &w.signature));
	if (t->alg->kind == JWT_KIND_HMAC)
		verify_work(&w);
	else
		wait_compute(verify_work, &w);
	if (w.right)
		return STATUS_OK;
	return jwt_refuse(t, t->alg->kind == JWT_KIND_HMAC ? "Bad HMAC" : "Bad signature");
}

enum status
jwt_check(const struct jwt_rules *rules, struct str token, uint64_t now_s, struct arena *arena,
	  struct jwt_claims *ret, struct err *err)
{
	struct token t = { .rules = rules, .arena = arena, .err = err, .now_s = (double)now_s };
	struct jwt_claims claims = { .until_s = 0 };

	if (token.len > JWT_TOKEN_BYTES)
		return err_set(err, STATUS_INVALID, "A token has at most %d bytes.",
			       JWT_TOKEN_BYTES);
	if (!token.len)
		return jwt_refuse(&t, MALFORMED_TEXT);
	TRY(token_split(&t, token));
	TRY(part_members(&t, t.header, &t.head, &t.head_count));
	TRY(header_check(&t));
	TRY(part_members(&t, t.payload, &t.claims, &t.claims_count));
	TRY(issued_check(&t));
	TRY(time_check(&t, &claims.until_s));
	TRY(key_find(&t));
	TRY(signature_check(&t));
	TRY(roles_read(&t, &claims));
	TRY(name_read(&t, &claims));
	memcpy(claims.key, t.key->id, sizeof(claims.key));
	*ret = claims;
	return STATUS_OK;
}
