#include <openssl/sha.h>

#include "base/mem.h"
#include "door/redis/script/eval.h"
#include "base/hash.h"
#include "serve/expiring.h"

struct cached {
	struct expiring_entry entry; /* first */
	char sha[EVAL_SHA_CHARS];
	struct str text; /* behind the struct */
};

_Static_assert((int)SCRIPT_BYTES <= (int)EVAL_CACHE_BYTES, "there is room for every script");

struct eval_cache {
	struct expiring texts;
};

void
eval_sha(struct str text, char ret[static EVAL_SHA_CHARS + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char sha[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)text.ptr, text.len, sha);
	for (size_t i = 0; i < sizeof(sha); i++) {
		ret[2 * i] = digits[sha[i] >> 4];
		ret[2 * i + 1] = digits[sha[i] & 15];
	}
	ret[EVAL_SHA_CHARS] = '\0';
}

static bool
cached_is(const struct expiring_entry *e, const void *sha)
{
	return memcmp(((const struct cached *)e)->sha, sha, EVAL_SHA_CHARS) == 0;
}

static void
cached_free(struct expiring_entry *e)
{
	mem_free(e);
}

static const struct expiring_rules script_rules = {
	.most = EVAL_CACHE_ENTRIES,
	.most_bytes = EVAL_CACHE_BYTES,
	.replaces = true,
	.is = cached_is,
	.free = cached_free,
};

struct eval_cache *
eval_cache_new(void)
{
	struct eval_cache *cache = mem_zalloc(sizeof(*cache));

	if (cache)
		expiring_init(&cache->texts, &script_rules);
	return cache;
}

/* A text that is looked for; `arena` NULL: only whether it is there. */
struct search {
	struct arena *arena;
	struct str text;
	bool found;
};

/* Copies the text with the table's lock, since it may be forgotten right behind that. */
static enum expiring_look
search_look(void *arg, struct expiring_entry *e)
{
	struct search *s = arg;

	s->found = true;
	if (!s->arena)
		return EXPIRING_LEAVE;
	s->text = arena_dup(s->arena, ((const struct cached *)e)->text);
	return EXPIRING_USE;
}

static void
search_run(struct eval_cache *cache, const char *sha, struct search *s)
{
	uint64_t hash = hash_keyed(0, str_of(sha, EVAL_SHA_CHARS));

	(void)expiring_look(&cache->texts, hash, sha, search_look, s);
}

struct str
eval_cache_find(struct eval_cache *cache, struct str sha, struct arena *arena)
{
	struct search s = { .arena = arena };

	search_run(cache, sha.ptr, &s);
	return s.text;
}

bool
eval_cache_has(struct eval_cache *cache, struct str sha)
{
	struct search s = { .arena = NULL };

	search_run(cache, sha.ptr, &s);
	return s.found;
}

enum status
eval_cache_add(struct eval_cache *cache, const char *sha, struct str text)
{
	struct str name = str_of(sha, EVAL_SHA_CHARS);
	struct cached *c;
	enum status status;

	if (eval_cache_has(cache, name))
		return STATUS_OK;
	c = mem_alloc(sizeof(*c) + text.len);
	if (!c)
		return STATUS_NOMEM;
	memcpy(c->sha, sha, EVAL_SHA_CHARS);
	c->text = str_of(c + 1, text.len);
	if (text.len)
		memcpy(c + 1, text.ptr, text.len);
	status = expiring_add(&cache->texts, hash_keyed(0, name), c->sha, &c->entry, text.len);
	if (status == STATUS_OK)
		expiring_give(&cache->texts, &c->entry);
	else
		mem_free(c);
	/* Another client may have added it meanwhile. */
	return status == STATUS_EXISTS ? STATUS_OK : status;
}

void
eval_cache_clear(struct eval_cache *cache)
{
	expiring_end_all(&cache->texts, NULL, NULL);
}

size_t
eval_cache_count(struct eval_cache *cache)
{
	return expiring_count(&cache->texts);
}

void
eval_cache_free(struct eval_cache *cache)
{
	if (!cache)
		return;
	expiring_fini(&cache->texts);
	mem_free(cache);
}

size_t
eval_cache_bytes(struct eval_cache *cache)
{
	return expiring_bytes(&cache->texts);
}
