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

struct files_check {
	const rocksdb_livefiles_t *files;
	kv_damaged_found *found;
	void *arg;
	struct buf next;   /* where to go on behind the damaged file */
	struct buf before; /* the last key that was read */
};

static bool
file_is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Tells of the file that the error names. False if that is none of the store's. */
static bool
files_tell(struct files_check *c, const char *error)
{
	char name[KV_DAMAGE_FILE_BYTES];
	struct kv_damaged_file file = { .file = name,
					.text = error,
					.before = buf_str(&c->before) };

	if (!error_file(error, name))
		return false;
	for (int i = 0; i < rocksdb_livefiles_count(c->files); i++) {
		if (!file_is_named(rocksdb_livefiles_name(c->files, i), name))
			continue;
		file.first.ptr = rocksdb_livefiles_smallestkey(c->files, i, &file.first.len);
		file.last.ptr = rocksdb_livefiles_largestkey(c->files, i, &file.last.len);
		c->found(c->arg, &file);
		buf_clear(&c->next);
		buf_append_str(&c->next, file.last);
		buf_append_byte(&c->next, 0);
		return buf_status(&c->next) == STATUS_OK;
	}
	return false;
}

/* Reads on until damage is met, or the end. */
static enum status
files_read(struct files_check *c, rocksdb_iterator_t *it, bool *ret_end, struct err *err)
{
	AUTO(buf_release) struct buf before = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	enum status status = STATUS_OK;
	char *error = NULL;

	buf_append_str(&before, buf_str(&c->next));
	TRY(buf_status(&before));
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
	/* It must go on further behind each time. */
	if (!files_tell(c, error) || str_cmp(buf_str(&c->next), buf_str(&before)) <= 0)
		status = emb_error(error, "reading all files", err);
	else
		rocksdb_free(error);
	return status;
}

static enum status
files_check_all(struct emb_store *store, struct files_check *c, struct err *err)
{
	rocksdb_readoptions_t *options = rocksdb_readoptions_create();
	enum status status = STATUS_OK;
	bool end = false;

	rocksdb_readoptions_set_total_order_seek(options, 1);
	rocksdb_readoptions_set_verify_checksums(options, 1);
	rocksdb_readoptions_set_fill_cache(options, 0);
	while (status == STATUS_OK && !end) {
		/* An iterator that has failed stays so. */
		rocksdb_iterator_t *it = rocksdb_create_iterator(store->db, options);

		if (c->next.len)
			rocksdb_iter_seek(it, c->next.ptr, c->next.len);
		else
			rocksdb_iter_seek_to_first(it);
		status = files_read(c, it, &end, err);
		rocksdb_iter_destroy(it);
	}
	rocksdb_readoptions_destroy(options);
	return status;
}

enum status
emb_files_check(struct kv_store *base, kv_damaged_found *found, void *arg, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	struct files_check c = { .found = found,
				 .arg = arg,
				 .next = BUF_INIT(2 * KV_LIMIT_KEY_BYTES),
				 .before = BUF_INIT(2 * KV_LIMIT_KEY_BYTES) };
	struct gate_pass pass;
	enum status status;

	TRY(emb_handle_use_long(store, &pass, err));
	c.files = rocksdb_livefiles(store->db);
	status = files_check_all(store, &c, err);
	rocksdb_livefiles_destroy(c.files);
	emb_handle_leave_long(store, pass);
	buf_release(&c.next);
	buf_release(&c.before);
	return status;
}
