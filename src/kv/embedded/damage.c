#include "kv/embedded/damage.h"

#include <stdio.h>

#include "base/mem.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/handle.h"

void
emb_damages_init(struct emb_damages *d)
{
	*d = (struct emb_damages){ .count = 0 };
	(void)pthread_mutex_init(&d->lock, NULL);
}

void
emb_damages_release(struct emb_damages *d)
{
	mem_free(d->all);
	pthread_mutex_destroy(&d->lock);
}

/* The name of the table that RocksDB names in an error. False if it names none. */
static bool
error_file(const char *text, char ret[KV_DAMAGE_FILE_BYTES])
{
	const char *end = strstr(text, ".sst");
	const char *begin = end;

	if (!end)
		return false;
	while (begin > text && begin[-1] >= '0' && begin[-1] <= '9')
		begin--;
	end += strlen(".sst");
	if (end - begin >= KV_DAMAGE_FILE_BYTES)
		return false;
	memcpy(ret, begin, (size_t)(end - begin));
	ret[end - begin] = '\0';
	return true;
}

static void
damage_note(struct emb_damages *d, struct str key, const char *text)
{
	struct kv_damage damage = { .key_len = key.len < KV_DAMAGE_KEY_BYTES
						       ? key.len
						       : KV_DAMAGE_KEY_BYTES };
	bool known = false;

	if (!error_file(text, damage.file))
		return;
	(void)snprintf(damage.text, sizeof(damage.text), "%s", text);
	if (damage.key_len)
		memcpy(damage.key, key.ptr, damage.key_len);
	pthread_mutex_lock(&d->lock);
	if (!d->all)
		d->all = mem_zalloc(KV_DAMAGES_KEPT * sizeof(*d->all));
	for (size_t i = 0; i < d->count && !known; i++)
		known = strcmp(d->all[i].file, damage.file) == 0;
	if (d->all && !known && d->count < KV_DAMAGES_KEPT)
		d->all[d->count++] = damage;
	pthread_mutex_unlock(&d->lock);
}

enum status
emb_read_error(struct emb_store *store, struct str key, char *rocksdb_error, const char *what,
	       struct err *err)
{
	if (strncmp(rocksdb_error, "Corruption", strlen("Corruption")) == 0)
		damage_note(&store->damages, key, rocksdb_error);
	return emb_error(rocksdb_error, what, err);
}

size_t
emb_damages_list(struct kv_store *base, size_t from, struct kv_damage *ret, size_t most)
{
	struct emb_damages *d = &((struct emb_store *)base)->damages;
	size_t count;

	pthread_mutex_lock(&d->lock);
	count = d->count;
	for (size_t i = 0; i < most && from + i < count; i++)
		ret[i] = d->all[from + i];
	pthread_mutex_unlock(&d->lock);
	return count;
}

/* ---- All files ---- */

enum {
	FILES_STEPS =
		4096, /* of looking for the end of a damaged block: one for each bit of a key */
};

struct files_check {
	struct emb_store *store;
	const rocksdb_livefiles_t *files;
	bool *told; /* by file */
	rocksdb_readoptions_t *options;
	kv_damaged_found *found;
	void *arg;
	struct buf next;   /* where to go on behind the damage */
	struct buf before; /* the last key that was read */
};

static bool
file_is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* The file that the error names; -1: none of the store's. */
static int
files_find(const struct files_check *c, const char *error)
{
	char name[KV_DAMAGE_FILE_BYTES];

	if (!error_file(error, name))
		return -1;
	for (int i = 0; i < rocksdb_livefiles_count(c->files); i++)
		if (file_is_named(rocksdb_livefiles_name(c->files, i), name))
			return i;
	return -1;
}

/* Tells of a file once, however many of its blocks are damaged. */
static void
files_tell(struct files_check *c, int at, const char *error)
{
	char name[KV_DAMAGE_FILE_BYTES];
	struct kv_damaged_file file = { .file = name,
					.text = error,
					.before = buf_str(&c->before) };

	if (c->told[at] || !error_file(error, name))
		return;
	c->told[at] = true;
	file.first.ptr = rocksdb_livefiles_smallestkey(c->files, at, &file.first.len);
	file.last.ptr = rocksdb_livefiles_largestkey(c->files, at, &file.last.len);
	c->found(c->arg, &file);
}

/* True if reading from there meets the same damage: its words name the file and the block. */
static bool
files_meet(const struct files_check *c, struct str from, const char *error)
{
	rocksdb_iterator_t *it = rocksdb_create_iterator(c->store->db, c->options);
	char *met = NULL;
	bool same;

	rocksdb_iter_seek(it, from.ptr, from.len);
	rocksdb_iter_get_error(it, &met);
	same = met && strcmp(met, error) == 0;
	rocksdb_free(met);
	rocksdb_iter_destroy(it);
	return same;
}

static unsigned
key_byte(struct str key, size_t at)
{
	return at < key.len ? (uint8_t)key.ptr[at] : 0;
}

/* The key in the middle of two, as numbers behind a point. False if there is none between them. */
static bool
key_between(struct str low, struct str high, struct buf *ret)
{
	size_t len = low.len > high.len ? low.len : high.len;
	unsigned carry = 0;

	buf_clear(ret);
	for (size_t i = 0; i < len; i++)
		buf_append_byte(ret, 0);
	if (buf_status(ret) != STATUS_OK)
		return false;
	for (size_t i = len; i-- > 0;) {
		carry += key_byte(low, i) + key_byte(high, i);
		ret->ptr[i] = (char)(uint8_t)carry;
		carry >>= 8;
	}
	/* What the sum has above its first byte is the first bit of its half. */
	for (size_t i = 0; i < len; i++) {
		carry = carry << 8 | (uint8_t)ret->ptr[i];
		ret->ptr[i] = (char)(uint8_t)(carry >> 1);
		carry &= 1;
	}
	return str_cmp(buf_str(ret), low) > 0 && str_cmp(buf_str(ret), high) < 0;
}

/*
 * Looks for the end of a damaged block, which the file does not tell: as near as bisection between
 * the last key that was read and the end of the file comes to it. What other files have meanwhile
 * is read from there on.
 */
static enum status
files_pass(struct files_check *c, int at, const char *error)
{
	AUTO(buf_release) struct buf low = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf middle = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct str last;

	last.ptr = rocksdb_livefiles_largestkey(c->files, at, &last.len);
	buf_append_str(&low, str_cmp(buf_str(&c->before), buf_str(&c->next)) > 0
				     ? buf_str(&c->before)
				     : buf_str(&c->next));
	buf_clear(&c->next);
	buf_append_str(&c->next, last);
	buf_append_byte(&c->next, 0);
	TRY(buf_status(&low));
	TRY(buf_status(&c->next));
	for (unsigned i = 0; i < FILES_STEPS; i++) {
		struct buf *end = &c->next;

		if (!key_between(buf_str(&low), buf_str(&c->next), &middle))
			break;
		if (files_meet(c, buf_str(&middle), error))
			end = &low;
		buf_clear(end);
		buf_append_buf(end, &middle);
		TRY(buf_status(end));
	}
	return STATUS_OK;
}

/* Reads on until damage is met, or the end. */
static enum status
files_read(struct files_check *c, rocksdb_iterator_t *it, bool *ret_end, struct err *err)
{
	AUTO(buf_release) struct buf begun = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	enum status status = STATUS_OK;
	char *error = NULL;
	int at;

	buf_append_buf(&begun, &c->next);
	TRY(buf_status(&begun));
	while (rocksdb_iter_valid(it)) {
		size_t len;
		const char *key = rocksdb_iter_key(it, &len);

		buf_clear(&c->before);
		buf_append(&c->before, key, len);
		rocksdb_iter_next(it);
	}
	rocksdb_iter_get_error(it, &error);
	*ret_end = !error;
	if (!error)
		return STATUS_OK;
	at = files_find(c, error);
	if (at >= 0) {
		files_tell(c, at, error);
		status = files_pass(c, at, error);
	}
	/* It must go on further behind each time. */
	if (at < 0 || status != STATUS_OK || str_cmp(buf_str(&c->next), buf_str(&begun)) <= 0)
		return emb_error(error, "reading all files", err);
	rocksdb_free(error);
	return STATUS_OK;
}

static enum status
files_check_all(struct files_check *c, struct err *err)
{
	enum status status = STATUS_OK;
	bool end = false;

	rocksdb_readoptions_set_total_order_seek(c->options, 1);
	rocksdb_readoptions_set_verify_checksums(c->options, 1);
	rocksdb_readoptions_set_fill_cache(c->options, 0);
	while (status == STATUS_OK && !end) {
		/* An iterator that has failed stays so. */
		rocksdb_iterator_t *it = rocksdb_create_iterator(c->store->db, c->options);

		if (c->next.len)
			rocksdb_iter_seek(it, c->next.ptr, c->next.len);
		else
			rocksdb_iter_seek_to_first(it);
		status = files_read(c, it, &end, err);
		rocksdb_iter_destroy(it);
	}
	return status;
}

enum status
emb_files_check(struct kv_store *base, kv_damaged_found *found, void *arg, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	struct files_check c = { .store = store,
				 .found = found,
				 .arg = arg,
				 .next = BUF_INIT(2 * KV_LIMIT_KEY_BYTES),
				 .before = BUF_INIT(2 * KV_LIMIT_KEY_BYTES) };
	struct gate_pass pass;
	enum status status;

	TRY(emb_handle_use_long(store, &pass, err));
	c.files = rocksdb_livefiles(store->db);
	c.told = mem_zalloc(((size_t)rocksdb_livefiles_count(c.files) + 1) * sizeof(*c.told));
	c.options = rocksdb_readoptions_create();
	status = c.told ? files_check_all(&c, err) : err_set(err, STATUS_NOMEM, "out of memory");
	rocksdb_readoptions_destroy(c.options);
	mem_free(c.told);
	rocksdb_livefiles_destroy(c.files);
	emb_handle_leave_long(store, pass);
	buf_release(&c.next);
	buf_release(&c.before);
	return status;
}
