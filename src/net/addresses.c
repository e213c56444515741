#include "net/addresses.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	NET_ADDRESS_SLOTS = 4096, /* at most; chains are short whatever the addresses are */
};

struct net_address {
	struct address_block block;
	size_t count;
	struct net_address *next;
};

enum status
net_addresses_init(struct net_addresses *a, size_t limit, size_t max_connections)
{
	size_t slots = hash_slots(max_connections);

	*a = (struct net_addresses){ .limit = limit, .spares_loopback = limit == 0 };
	if (!limit)
		a->limit = max_connections - max_connections / 4;
	a->slot_count = slots < NET_ADDRESS_SLOTS ? slots : NET_ADDRESS_SLOTS;
	a->slots = mem_zalloc(a->slot_count * sizeof(struct net_address *));
	if (!a->slots)
		return STATUS_NOMEM;
	pthread_mutex_init(&a->lock, NULL);
	return STATUS_OK;
}

void
net_addresses_fini(struct net_addresses *a)
{
	if (!a->slots)
		return;
	for (size_t i = 0; i < a->slot_count; i++)
		assert(!a->slots[i] && "every connection has ended");
	mem_free(a->slots);
	pthread_mutex_destroy(&a->lock);
}

/*
 * True if connections of that peer are counted: it has an IP address that the limit is for. A user
 * at a Unix socket (net/tcp.h) is like the loopback.
 */
static bool
net_addresses_count(const struct net_addresses *a, const char *peer, struct address_block *ret)
{
	bool is_ip = peer[0] == '[' || (peer[0] >= '0' && peer[0] <= '9');
	bool is_user = strncmp(peer, "unix-", 5) == 0;

	if (is_user ? a->spares_loopback : !is_ip)
		return false;
	if (is_ip && (a->spares_loopback &&
		      (strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]:", 6) == 0)))
		return false;
	address_block_of(str_from_cstr(peer), ret);
	return true;
}

/* Where the address is in its chain, or the chain's end. With the lock held. */
static struct net_address **
net_addresses_find(struct net_addresses *a, const struct address_block *block)
{
	uint64_t hash = hash_keyed(0, str_of((const char *)block->bytes, sizeof(block->bytes)));
	struct net_address **at = &a->slots[hash & (a->slot_count - 1)];

	while (*at && !address_block_eq(&(*at)->block, block))
		at = &(*at)->next;
	return at;
}

bool
net_addresses_take(struct net_addresses *a, const char *peer)
{
	struct address_block block;
	struct net_address **at;
	bool taken = false;

	if (!net_addresses_count(a, peer, &block))
		return true;
	pthread_mutex_lock(&a->lock);
	at = net_addresses_find(a, &block);
	if (!*at) {
		*at = mem_zalloc(sizeof(**at));
		if (*at)
			(*at)->block = block;
	}
	if (*at && (*at)->count < a->limit) {
		(*at)->count++;
		taken = true;
	}
	pthread_mutex_unlock(&a->lock);
	return taken;
}

void
net_addresses_give(struct net_addresses *a, const char *peer)
{
	struct address_block block;
	struct net_address **at;

	if (!net_addresses_count(a, peer, &block))
		return;
	pthread_mutex_lock(&a->lock);
	at = net_addresses_find(a, &block);
	assert(*at && (*at)->count > 0);
	if (--(*at)->count == 0) {
		struct net_address *empty = *at;

		*at = empty->next;
		mem_free(empty);
	}
	pthread_mutex_unlock(&a->lock);
}
