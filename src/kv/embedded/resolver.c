#include "kv/embedded/resolver.h"

#include <assert.h>

#include "base/mem.h"
#include "base/status.h"

/*
 * A step at a key: the version of the key itself, and of all keys behind it up to the next step.
 * With two versions in one step, the write of a single key is one step and not two.
 */
struct step {
	struct tree_node node;
	uint64_t at;
	uint64_t behind;
	uint64_t newest; /* of the whole subtree */
	char key[];
};

static struct step *
step_of(struct tree_node *n)
{
	return (struct step *)n;
}

static void
step_update(struct tree_node *n)
{
	struct step *s = step_of(n);

	s->newest = s->at > s->behind ? s->at : s->behind;
	if (n->left && step_of(n->left)->newest > s->newest)
		s->newest = step_of(n->left)->newest;
	if (n->right && step_of(n->right)->newest > s->newest)
		s->newest = step_of(n->right)->newest;
}

void
resolver_init(struct resolver *r, uint64_t oldest)
{
	*r = (struct resolver){ .oldest = oldest, .newest = oldest };
	tree_init(&r->tree, step_update);
}

static void
free_all(struct tree_node *n)
{
	while (n) {
		struct tree_node *right = n->right;

		free_all(n->left);
		mem_free(n);
		n = right;
	}
}

void
resolver_fini(struct resolver *r)
{
	free_all(r->tree.root);
	r->tree.root = NULL;
	r->count = 0;
	r->bytes = 0;
}

/* True if `end` is the very next key after `key`. */
static bool
is_next_key(struct str key, struct str end)
{
	return end.len == key.len + 1 && end.ptr[key.len] == '\0' && str_starts_with(end, key);
}

/* Looks at steps with begin <= key < end only. */
static bool
newer_in(struct tree_node *n, struct str begin, struct str end, uint64_t version)
{
	while (n && step_of(n)->newest > version) {
		struct step *s = step_of(n);

		if (str_cmp(n->key, begin) < 0) {
			n = n->right;
			continue;
		}
		if (str_cmp(n->key, end) < 0) {
			if (s->at > version || (s->behind > version && !is_next_key(n->key, end)) ||
			    newer_in(n->right, begin, end, version))
				return true;
		}
		n = n->left;
	}
	return false;
}

/* The version of the keys between the last step before `key` and the next one. */
static uint64_t
version_before(const struct resolver *r, struct str key)
{
	struct tree_node *n = tree_before(&r->tree, key);

	return n ? step_of(n)->behind : 0;
}

bool
resolver_written_since(const struct resolver *r, struct str begin, struct str end, uint64_t version)
{
	if (str_cmp(begin, end) >= 0)
		return false;
	if (version < r->oldest)
		return true;
	if (version >= r->newest)
		return false;
	if (newer_in(r->tree.root, begin, end, version))
		return true;
	return version_before(r, begin) > version && !tree_find(&r->tree, begin);
}

/* The step at `key`; a new one continues what was before it. NULL when out of memory. */
static struct step *
step_at(struct resolver *r, struct str key)
{
	struct tree_node *n = tree_find(&r->tree, key);
	struct step *s;

	if (n)
		return step_of(n);
	s = mem_alloc(sizeof(*s) + key.len);
	if (!s)
		return NULL;
	if (key.len)
		memcpy(s->key, key.ptr, key.len);
	s->node.key = str_of(s->key, key.len);
	s->at = version_before(r, key);
	s->behind = s->at;
	tree_insert(&r->tree, &s->node);
	r->count++;
	r->bytes += sizeof(*s) + key.len;
	return s;
}

static void
step_remove(struct resolver *r, struct step *s)
{
	r->count--;
	r->bytes -= sizeof(*s) + s->node.key.len;
	tree_remove(&r->tree, &s->node);
	mem_free(s);
}

static enum status
add_range(struct resolver *r, struct str begin, struct str end, uint64_t version)
{
	struct step *last = step_at(r, end);
	struct step *first = last ? step_at(r, begin) : NULL;
	struct tree_node *n;

	if (!first)
		return STATUS_NOMEM;
	while ((n = tree_next(&first->node)) != &last->node) {
		assert(n);
		step_remove(r, step_of(n));
	}
	first->at = version;
	first->behind = version;
	tree_changed(&r->tree, &first->node);
	return STATUS_OK;
}

void
resolver_add(struct resolver *r, struct str begin, struct str end, uint64_t version)
{
	enum status status = STATUS_OK;
	struct step *s;

	assert(version >= r->newest);
	if (str_cmp(begin, end) >= 0)
		return;
	r->newest = version;
	/* Whoever can still be judged has read it. */
	if (version <= r->oldest)
		return;
	if (!is_next_key(begin, end)) {
		status = add_range(r, begin, end, version);
	} else if ((s = step_at(r, begin))) {
		s->at = version;
		tree_changed(&r->tree, &s->node);
	} else {
		status = STATUS_NOMEM;
	}
	if (status != STATUS_OK || r->bytes > RESOLVER_MAX_BYTES)
		resolver_forget(r, version);
}

void
resolver_forget(struct resolver *r, uint64_t version)
{
	uint64_t before = 0;

	if (version <= r->oldest)
		return;
	r->oldest = version;
	if (version >= r->newest) {
		resolver_fini(r);
		return;
	}
	for (struct tree_node *n = tree_first(&r->tree); n;) {
		struct tree_node *next = tree_next(n);
		struct step *s = step_of(n);

		if (before <= version && s->at <= version && s->behind <= version)
			step_remove(r, s);
		else
			before = s->behind;
		n = next;
	}
}
