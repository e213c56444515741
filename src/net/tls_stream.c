/*
 * Streams with TLS, on top of the loop's streams ("the stream below"). "Above" is the protocol.
 *
 * OpenSSL does not touch sockets here. Received bytes are in the loop's read buffer while OpenSSL
 * decrypts them (`in`). Encrypted bytes are gathered in a buffer of the loop (`out`) and written to
 * the stream below at once. Only the part that the stream below does not take is copied (struct
 * tls_flight). So an idle connection has OpenSSL's state, but no buffer.
 *
 * The stream below reads if and only if the protocol reads. So decrypted bytes are never kept: one
 * read below becomes one read above, and NET_UPPER_BYTES leave room for that.
 *
 * A handshake computes for about as long as hundreds of requests. So the bytes of a handshake are
 * put aside, and loop_run_later() runs it at the low priority of fibers that compute for long.
 *
 * OpenSSL's memory counts in the budget of all connections by what was measured of it, as of
 * something that lasts. A handshake takes the most, and anybody may begin one. So it begins as a
 * request does, when there is room for one more, and where others need the memory its client has
 * no more time for it than for the rest of a request.
 */
#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include "base/budget_room.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "net/conn.h"
#include "net/session.h"
#include "net/tls.h"
#include "net/tls_hello.h"

enum {
	TLS_RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
	TLS_BATCH_RECORDS = 2, /* records that are written to the stream below together */
	TLS_OUT_BYTES = 256 * 1024,
	TLS_OUT_KEPT_BYTES = 64 * 1024, /* a buffer larger than this is freed after use */
	TLS_HANDSHAKE_BYTE = 0x16,      /* the first byte of every TLS connection */
	TLS_ASIDE_BYTES = 16 * 1024,    /* of a handshake; with more, reading pauses */
	/* The memory that OpenSSL takes, measured: */
	TLS_STATE_BYTES = 14 * 1024,   /* for each connection */
	TLS_SHAKING_BYTES = 30 * 1024, /* more, until the end of its handshake */
	TLS_BUFFER_BYTES = 17 * 1024,  /* more, while a record has come in part */
};

_Static_assert(NET_UPPER_BYTES >= SSL3_RT_MAX_PACKET_SIZE,
	       "a record that was read in part and one more read fit into the read buffer");

/* The buffers of a loop that OpenSSL uses while it is called for one of its connections. */
struct net_tls_loop {
	struct str in;  /* received bytes that OpenSSL has not taken yet */
	struct buf out; /* encrypted bytes that OpenSSL has made */
	/* Holds the received bytes while the loop's read buffer receives the decrypted ones. */
	char *spare;
	char plain[TLS_RECORD_BYTES]; /* a record that is put together of several pieces */
};

/*
 * Work that a connection has left: its handshake, or an end of the stream that is reported later.
 */
struct tls_work {
	struct letter letter;
	struct timer timer;
	struct net_conn *conn;
	struct buf in; /* received bytes of the handshake that OpenSSL has not seen yet */
	/* Counts `in`, and the handshake as a request with a flat amount. */
	struct budget_part memory;
	uint64_t until_ns; /* when the handshake has to be complete */
	bool begun;        /* OpenSSL has seen its first bytes */
	bool paused;       /* nothing is read below until OpenSSL has seen what came */
	bool eof;          /* the stream below ended behind `in` */
	bool timed;        /* `timer` is attached */
	bool seen;         /* the peer's first byte was checked */
	bool posted;
	bool closed; /* the stream below is closed, but the letter is still queued */
};

/* Encrypted output that the stream below has not taken yet. */
struct tls_flight {
	struct net_write write;
	struct buf flying;
	struct buf next; /* output to be written after it */
};

struct tls_stream {
	SSL *ssl;
	struct tls_work *work;     /* NULL: no work is left */
	struct tls_flight *flight; /* NULL: all encrypted bytes were written */
	struct budget_part memory; /* counts what OpenSSL takes, the handshake aside */
	struct net_write *top;     /* the protocol's write that is under way */
	struct str rest;           /* the part of it that is not encrypted yet */
	bool open;                 /* the handshake is complete */
	bool broken;               /* TLS failed; nothing more can be sent */
	bool ended;                /* the peer has sent its last byte */
	bool ending;               /* shutdown() was called */
	/*
	 * One byte more was encrypted than the protocol was told. try_write() must not report that
	 * all was written while a part of it is in flight. The protocol's next write begins with
	 * that byte.
	 */
	bool ahead;
};

/* ---- Metrics ---- */

enum tls_result {
	TLS_RESULT_FULL,
	TLS_RESULT_RESUMED,
	TLS_RESULT_FAILED,
};

static const char *const tls_results[] = { "full", "resumed", "failed" };

METRIC_COUNTERS(handshakes, "frond_tls_handshakes_total", METRIC_NUMBER,
		"Handshakes of TLS: full ones, those that resumed a session, and those that "
		"failed.",
		"result", tls_results);

/* ---- OpenSSL's source and sink ---- */

static int
tls_bio_read(BIO *bio, char *to, int size)
{
	struct net_tls_loop *l = BIO_get_data(bio);
	size_t n = l->in.len < (size_t)size ? l->in.len : (size_t)size;

	BIO_clear_retry_flags(bio);
	if (!n) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(to, l->in.ptr, n);
	l->in = str_skip(l->in, n);
	return (int)n;
}

static int
tls_bio_write(BIO *bio, const char *from, int size)
{
	struct net_tls_loop *l = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	buf_append(&l->out, from, (size_t)size);
	return buf_status(&l->out) == STATUS_OK ? size : -1;
}

static long
tls_bio_ctrl(BIO *bio, int what, long number, void *ptr)
{
	(void)bio;
	(void)number;
	(void)ptr;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *tls_bio_method;

static void
tls_make_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "frond");

	if (m && BIO_meth_set_read(m, tls_bio_read) && BIO_meth_set_write(m, tls_bio_write) &&
	    BIO_meth_set_ctrl(m, tls_bio_ctrl))
		tls_bio_method = m;
}

static bool
tls_attach_bio(SSL *ssl, struct net_tls_loop *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio;

	pthread_once(&once, tls_make_bio_method);
	bio = tls_bio_method ? BIO_new(tls_bio_method) : NULL;
	if (!bio)
		return false;
	BIO_set_data(bio, l);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	return true;
}

struct net_tls_loop *
net_tls_loop_new(void)
{
	struct net_tls_loop *l = mem_zalloc(sizeof(*l));

	if (!l)
		return NULL;
	buf_init(&l->out, TLS_OUT_BYTES);
	l->spare = mem_alloc(NET_READ_BYTES);
	if (l->spare)
		return l;
	net_tls_loop_free(l);
	return NULL;
}

void
net_tls_loop_free(struct net_tls_loop *l)
{
	if (!l)
		return;
	buf_release(&l->out);
	mem_free(l->spare);
	mem_free(l);
}

/* ---- Parts of a stream ---- */

static struct tls_stream *
tls_of(const struct net_conn *c)
{
	return net_conn_upper_stream(c);
}

/* The stream implementation below. */
static const struct net_io *
tls_below(const struct net_conn *c)
{
	return c->loop->io;
}

static void
tls_drop_flight(struct tls_stream *s)
{
	struct tls_flight *f = s->flight;

	s->flight = NULL;
	if (!f)
		return;
	buf_release(&f->flying);
	buf_release(&f->next);
	mem_free(f);
}

static void
tls_drop_work(struct tls_stream *s)
{
	struct tls_work *w = s->work;

	if (!w)
		return;
	assert(!w->posted);
	s->work = NULL;
	if (w->timed)
		loop_detach_timer(&w->conn->loop->loop, &w->timer);
	buf_release(&w->in);
	budget_part_release(&w->memory);
	mem_free(w);
}

static void
tls_drop_ssl(struct tls_stream *s)
{
	SSL_free(s->ssl);
	s->ssl = NULL;
	budget_part_release(&s->memory);
}

/* Counts what OpenSSL and the bytes that were put aside take now. */
static void
tls_count(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);
	struct tls_work *w = s->work;
	bool in_part = s->open && SSL_has_pending(s->ssl);
	size_t shaking = TLS_SHAKING_BYTES - BUDGET_PART_BYTES;

	budget_count_all(&s->memory, TLS_STATE_BYTES + (in_part ? TLS_BUFFER_BYTES : 0));
	if (w)
		budget_count_all(&w->memory, w->in.cap + (w->begun ? shaking : 0));
}

/* ---- Output ---- */

static bool
tls_fly(struct net_conn *c, struct str out)
{
	struct tls_stream *s = tls_of(c);
	struct tls_flight *f = mem_zalloc(sizeof(*f));

	if (!f)
		return false;
	buf_init(&f->flying, TLS_OUT_BYTES);
	buf_init(&f->next, TLS_OUT_BYTES);
	f->write.conn = c;
	s->flight = f;
	buf_append_str(&f->flying, out);
	/*
	 * Cleared before the write below, because that write may complete at once and the next
	 * output is gathered in the same buffer.
	 */
	buf_clear(&c->loop->tls->out);
	return buf_status(&f->flying) == STATUS_OK &&
	       tls_below(c)->write(c, &f->write, buf_str(&f->flying));
}

/*
 * Writes bytes to the stream below, and puts in flight what it does not take. False if it is
 * broken.
 */
static bool
tls_give(struct net_conn *c, struct str out)
{
	struct tls_stream *s = tls_of(c);
	ssize_t went;

	if (!out.len)
		return true;
	if (s->flight) {
		buf_append_str(&s->flight->next, out);
		return buf_status(&s->flight->next) == STATUS_OK;
	}
	went = tls_below(c)->try_write(c, &out, 1);
	if (went < 0)
		return false;
	out = str_skip(out, (size_t)went);
	return !out.len || tls_fly(c, out);
}

/* Writes the encrypted bytes to the stream below. */
static bool
tls_send(struct net_conn *c)
{
	struct buf *out = &c->loop->tls->out;
	bool ok = buf_status(out) == STATUS_OK && tls_give(c, buf_str(out));

	if (out->cap > TLS_OUT_KEPT_BYTES)
		buf_release(out);
	buf_clear(out);
	return ok;
}

/* Encrypts a record of at most TLS_RECORD_BYTES. False if that failed; nothing may be sent then. */
static bool
tls_encrypt(struct net_conn *c, struct str plain)
{
	assert(plain.len && plain.len <= TLS_RECORD_BYTES);
	ERR_clear_error();
	if (SSL_write(tls_of(c)->ssl, plain.ptr, (int)plain.len) == (int)plain.len)
		return true;
	buf_clear(&c->loop->tls->out);
	return false;
}

static void
tls_wrote(struct net_conn *c, bool ok)
{
	struct tls_stream *s = tls_of(c);

	s->top = NULL;
	s->rest = (struct str){ 0 };
	net_conn_wrote(c, ok);
}

/* Continues the protocol's write as far as the stream below takes it. */
static void
tls_go_on_writing(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);

	while (s->top && s->rest.len && !s->flight) {
		bool ok = true;

		for (int i = 0; ok && i < TLS_BATCH_RECORDS && s->rest.len; i++) {
			size_t n = s->rest.len < TLS_RECORD_BYTES ? s->rest.len : TLS_RECORD_BYTES;

			ok = tls_encrypt(c, str_of(s->rest.ptr, n));
			s->rest = str_skip(s->rest, n);
		}
		if (!ok || !tls_send(c)) {
			net_conn_abort(c);
			return;
		}
	}
	if (s->top && !s->rest.len && !s->flight)
		tls_wrote(c, true);
}

/* Takes the bytes of the next record out of the pieces. */
static struct str
tls_take_record(struct net_tls_loop *l, struct str pieces[2])
{
	struct str *first = pieces[0].len ? &pieces[0] : &pieces[1];
	struct str *second = first == &pieces[0] ? &pieces[1] : NULL;
	size_t n = first->len < TLS_RECORD_BYTES ? first->len : TLS_RECORD_BYTES;
	struct str record = str_of(first->ptr, n);
	size_t more = second ? second->len : 0;

	*first = str_skip(*first, n);
	if (more > TLS_RECORD_BYTES - n)
		more = TLS_RECORD_BYTES - n;
	if (!more)
		return record;
	memcpy(l->plain, record.ptr, n);
	memcpy(l->plain + n, second->ptr, more);
	*second = str_skip(*second, more);
	return str_of(l->plain, n + more);
}

static ssize_t
tls_try_write(struct net_conn *c, const struct str *pieces, size_t n)
{
	struct tls_stream *s = tls_of(c);
	struct str left[2] = { pieces[0], n > 1 ? pieces[1] : (struct str){ 0 } };
	size_t went = 0;

	assert(n && n <= 2);
	if (!s->open || s->broken || s->ending || s->flight || s->top)
		return 0;
	if (s->ahead) {
		struct str *first = left[0].len ? &left[0] : &left[1];

		*first = str_skip(*first, 1);
		s->ahead = false;
		went++;
	}
	while (left[0].len + left[1].len && !s->flight) {
		for (int i = 0; i < TLS_BATCH_RECORDS && left[0].len + left[1].len; i++) {
			struct str record = tls_take_record(c->loop->tls, left);

			if (!tls_encrypt(c, record))
				return -1;
			went += record.len;
		}
		if (!tls_send(c))
			return -1;
	}
	if (s->flight && went) {
		s->ahead = true;
		went--;
	}
	return (ssize_t)went;
}

static bool
tls_write(struct net_conn *c, struct net_write *w, struct str data)
{
	struct tls_stream *s = tls_of(c);

	assert(!s->top && data.len);
	s->top = w;
	s->rest = str_skip(data, s->ahead);
	s->ahead = false;
	if (s->open)
		tls_go_on_writing(c);
	return true;
}

static size_t
tls_unwritten(const struct net_conn *c)
{
	const struct tls_stream *s = tls_of(c);

	return s->rest.len + (s->flight ? tls_below(c)->unwritten(c) + s->flight->next.len : 0);
}

static size_t
tls_unconfirmed(const struct net_conn *c)
{
	return tls_below(c)->unconfirmed ? tls_below(c)->unconfirmed(c) : 0;
}

static size_t
tls_output_bytes(const struct net_conn *c)
{
	const struct tls_flight *f = tls_of(c)->flight;

	return f ? sizeof(*f) + f->flying.cap + f->next.cap : 0;
}

static void
tls_on_written(struct net_conn *c, bool ok)
{
	struct tls_stream *s = tls_of(c);
	struct tls_flight *f = s->flight;
	struct buf empty;

	assert(f);
	if (!ok || c->lost) {
		tls_drop_flight(s);
		if (s->top)
			tls_wrote(c, false);
		else if (!c->lost)
			net_conn_abort(c);
		return;
	}
	if (f->next.len) {
		empty = f->flying;
		f->flying = f->next;
		f->next = empty;
		buf_clear(&f->next);
		if (!tls_below(c)->write(c, &f->write, buf_str(&f->flying)))
			net_conn_abort(c);
		return;
	}
	tls_drop_flight(s);
	if (s->ending) {
		if (c->eof || !tls_below(c)->shutdown(c))
			net_conn_close(c);
		return;
	}
	tls_go_on_writing(c);
}

/* ---- Input ---- */

static void
tls_tell_end(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);

	s->ended = true;
	if (c->lost || !c->reading)
		return; /* tls_read() continues when the protocol reads again */
	(void)tls_below(c)->read(c, false);
	net_conn_deliver(c, 0);
}

/* Decrypts received bytes into the loop's read buffer and delivers them to the protocol. */
static void
tls_decrypt(struct net_conn *c, struct str in)
{
	struct tls_stream *s = tls_of(c);
	struct net_loop *l = c->loop;
	int error = SSL_ERROR_WANT_READ;
	size_t got = 0;
	int n;

	l->tls->in = in;
	while (l->tls->in.len || SSL_has_pending(s->ssl)) {
		assert(got < NET_READ_BYTES);
		ERR_clear_error();
		n = SSL_read(s->ssl, l->read_buffer + got, (int)(NET_READ_BYTES - got));
		if (n <= 0) {
			error = SSL_get_error(s->ssl, n);
			break;
		}
		got += (size_t)n;
	}
	l->tls->in = (struct str){ 0 };
	/* OpenSSL may have made an alert, or an answer to a change of keys. */
	if (!tls_send(c)) {
		net_conn_abort(c);
		return;
	}
	tls_count(c);
	if (got)
		net_conn_deliver(c, (ssize_t)got);
	if (c->lost)
		return;
	if (error == SSL_ERROR_ZERO_RETURN) {
		tls_tell_end(c);
	} else if (error != SSL_ERROR_WANT_READ) {
		s->broken = true;
		net_conn_close(c);
	}
}

/* ---- The handshake ---- */

static void
tls_post(struct net_conn *c, bool later)
{
	struct tls_work *w = tls_of(c)->work;

	if (w->posted)
		return;
	w->letter.later = later;
	w->posted = loop_post(&c->loop->loop, c->loop->loop.mailbox, &w->letter);
}

/*
 * Ends a connection whose handshake failed. `ok`: an answer was sent, and the peer gets time to
 * read it.
 */
static void
tls_give_up(struct net_conn *c, bool ok)
{
	struct tls_stream *s = tls_of(c);
	bool paused = s->work->paused;
	bool eof = s->work->eof;

	metric_add_at(&handshakes, TLS_RESULT_FAILED, 1);
	s->broken = true;
	tls_drop_work(s);
	/* The connection may stay for a while, but nothing is encrypted on it any more. */
	tls_drop_ssl(s);
	if (ok && eof)
		net_conn_close(c);
	else if (!ok || (net_conn_linger(c) && paused && !tls_below(c)->read(c, true)))
		net_conn_abort(c);
}

static void
tls_log_failure(const struct net_conn *c, const char *reason)
{
	static struct log_limit limit;
	uint64_t before;

	if (log_limit_pass(&limit, &before))
		log_event(LOG_LEVEL_INFO, "tls_handshake_failed",
			  "peer=%s reason=\"%s\" before=%llu", c->peer, reason,
			  (unsigned long long)before);
}

static void
tls_fail_handshake(struct net_conn *c)
{
	unsigned long code = ERR_peek_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	tls_log_failure(c, reason ? reason : "unknown");
	ERR_clear_error();
	tls_give_up(c, tls_send(c)); /* an alert */
}

/* True if the peer does not speak TLS; the connection then ends. */
static bool
tls_is_in_clear(struct net_conn *c)
{
	struct tls_work *w = tls_of(c)->work;
	const char *answer = c->slot->protocol->in_clear;
	char first = w->in.ptr[0];

	if (w->seen || first == TLS_HANDSHAKE_BYTE) {
		w->seen = true;
		return false;
	}
	/* The peer seems to speak a protocol of words, so it gets an answer in words. */
	if (!answer || !((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z')))
		answer = "";
	tls_give_up(c, tls_give(c, str_from_cstr(answer)));
	return true;
}

/* Called when OpenSSL has seen what was put aside: reading continues if it was paused. */
static bool
tls_resume(struct net_conn *c)
{
	struct tls_work *w = tls_of(c)->work;

	if (!w->paused || !c->reading)
		return true;
	w->paused = false;
	return tls_below(c)->read(c, true);
}

/* Called when the handshake is complete; bytes behind it may have come already. */
static void
tls_open_up(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);
	struct tls_work *w = s->work;
	struct str more = c->loop->tls->in;

	metric_add_at(&handshakes,
		      SSL_session_reused(s->ssl) ? TLS_RESULT_RESUMED : TLS_RESULT_FULL, 1);
	s->open = true;
	loop_set_timer(&c->loop->loop, &w->timer, WAIT_FOREVER);
	buf_clear(&w->in); /* `more` points into it until the work is dropped */
	tls_go_on_writing(c);
	if (!c->lost && !tls_resume(c))
		net_conn_abort(c);
	if (!c->lost)
		tls_decrypt(c, more);
	if (!c->lost && w->eof && !s->ended)
		tls_tell_end(c);
	if (!w->posted)
		tls_drop_work(s);
}

/* When to look after the handshake next. */
static void
tls_set_timer(struct tls_work *w, uint64_t after_ms)
{
	uint64_t at_ns = clock_after_ms(after_ms);

	loop_set_timer(&w->conn->loop->loop, &w->timer, at_ns < w->until_ns ? at_ns : w->until_ns);
}

/*
 * Begins the handshake. False: it has failed, more of its first message has to come, or there is no
 * room.
 */
static bool
tls_begin(struct net_conn *c)
{
	struct tls_work *w = tls_of(c)->work;
	size_t length = 0;

	if (!tls_hello_length(buf_str(&w->in), &length) && !w->eof)
		return false;
	if (length > TLS_HELLO_BYTES) {
		METRIC_REFUSED("TLS_HELLO_BYTES");
		tls_log_failure(c, "the first message is longer than TLS_HELLO_BYTES");
		tls_give_up(c, tls_give(c, TLS_HELLO_ALERT));
		return false;
	}
	if (!budget_has_room(c->loop->memory)) {
		tls_set_timer(w, NET_BEGIN_AGAIN_MS);
		return false;
	}
	w->begun = true;
	budget_enter(&w->memory);
	tls_count(c);
	tls_set_timer(w, NET_UNWELCOME_MS);
	return true;
}

static void
tls_shake_hands(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);
	struct net_tls_loop *l = c->loop->tls;
	int done;

	if (tls_is_in_clear(c) || (!s->work->begun && !tls_begin(c)))
		return;
	l->in = buf_str(&s->work->in);
	ERR_clear_error();
	done = SSL_do_handshake(s->ssl);
	if (done != 1 && SSL_get_error(s->ssl, done) != SSL_ERROR_WANT_READ) {
		l->in = (struct str){ 0 };
		tls_fail_handshake(c);
	} else if (!tls_send(c)) {
		net_conn_abort(c);
	} else if (done == 1) {
		tls_open_up(c);
	} else {
		buf_clear(&s->work->in);
		if (s->work->eof)
			net_conn_close(c);
		else if (!tls_resume(c))
			net_conn_abort(c);
	}
}

static void tls_finish_closing(struct net_conn *c);

static void
tls_do_work(struct letter *letter)
{
	struct tls_work *w = (struct tls_work *)letter;
	struct net_conn *c = w->conn;
	struct tls_stream *s = tls_of(c);

	w->posted = false;
	if (w->closed)
		tls_finish_closing(c);
	else if (c->lost || !c->reading)
		return; /* tls_read() posts the letter again */
	else if (s->ended)
		tls_tell_end(c);
	else if (w->in.len)
		tls_shake_hands(c);
}

/* The loop ends before its connections are closed, so nothing of them may be touched. */
static void
tls_leave_work(struct letter *letter)
{
	((struct tls_work *)letter)->posted = false;
}

static const struct letter_ops tls_work_ops = {
	.deliver = tls_do_work,
	.drop = tls_leave_work,
};

static void
tls_timed_out(struct timer *timer)
{
	struct tls_work *w = (struct tls_work *)((char *)timer - offsetof(struct tls_work, timer));
	bool full;

	if (w->conn->lost)
		return;
	if (clock_mono_ns() >= w->until_ns) {
		METRIC_REFUSED("handshake_timeout_ms");
	} else if (!w->begun) {
		loop_set_timer(&w->conn->loop->loop, timer, w->until_ns);
		tls_post(w->conn, true);
		return;
	} else if (budget_is_unwelcome(&w->memory, &full)) {
		METRIC_REFUSED("memory_bytes");
	} else {
		tls_set_timer(w, NET_UNWELCOME_MS);
		return;
	}
	metric_add_at(&handshakes, TLS_RESULT_FAILED, 1);
	net_conn_abort(w->conn);
}

static struct tls_work *
tls_work_new(struct net_conn *c)
{
	struct tls_work *w = mem_zalloc(sizeof(*w));

	if (!w)
		return NULL;
	w->letter.ops = &tls_work_ops;
	w->conn = c;
	buf_init(&w->in, NET_READ_BYTES);
	budget_part_init(&w->memory, c->loop->memory);
	budget_part_last(&w->memory);
	return w;
}

/* ---- Reading ---- */

static bool
tls_read(struct net_conn *c, bool on)
{
	struct tls_stream *s = tls_of(c);

	if (on && s->ended) {
		if (!s->work)
			s->work = tls_work_new(c);
		if (s->work)
			tls_post(c, false);
		return s->work;
	}
	if (on && s->work && s->work->in.len)
		tls_post(c, true);
	if (on && s->work && s->work->paused && s->work->in.len)
		return true;
	if (s->work)
		s->work->paused = false;
	return tls_below(c)->read(c, on);
}

/* Puts bytes of a handshake aside until its turn. */
static void
tls_put_aside(struct net_conn *c, struct str in)
{
	struct tls_work *w = tls_of(c)->work;

	buf_append_str(&w->in, in);
	tls_count(c);
	w->paused = w->in.len >= TLS_ASIDE_BYTES;
	if (buf_status(&w->in) != STATUS_OK || (w->paused && !tls_below(c)->read(c, false)))
		net_conn_abort(c);
	else
		tls_post(c, true);
}

static void
tls_on_read(struct net_conn *c, ssize_t n)
{
	struct tls_stream *s = tls_of(c);
	struct net_loop *l = c->loop;
	char *came = l->read_buffer;

	if (n < 0 || s->broken || c->lingering) {
		net_conn_deliver(c, n);
	} else if (n == 0 && s->open) {
		net_conn_deliver(c, 0);
	} else if (n == 0 && s->work->in.len) {
		s->work->eof = true; /* complete requests may be in front of it */
		tls_post(c, true);
	} else if (n == 0) {
		metric_add_at(&handshakes, TLS_RESULT_FAILED, 1);
		net_conn_close(c);
	} else if (!s->open) {
		tls_put_aside(c, str_of(came, (size_t)n));
	} else {
		l->read_buffer = l->tls->spare;
		l->tls->spare = came;
		tls_decrypt(c, str_of(came, (size_t)n));
	}
}

static enum net_peer
tls_probe(const struct net_conn *c)
{
	enum net_peer peer = tls_below(c)->probe(c);

	return peer == NET_PEER_THERE && tls_of(c)->ended ? NET_PEER_ENDED : peer;
}

static void
tls_local(const struct net_conn *c, char ret[static NET_PEER_BYTES])
{
	*ret = '\0';
	if (tls_below(c)->local)
		tls_below(c)->local(c, ret);
}

/* ---- Beginning and end ---- */

static bool
tls_open(struct net_conn *c, intptr_t handle)
{
	struct tls_stream *s = tls_of(c);
	struct tls_work *w;

	budget_part_init(&s->memory, c->loop->memory);
	budget_part_last(&s->memory);
	if (!tls_below(c)->open(c, handle))
		return false;
	w = s->work = tls_work_new(c);
	if (!w || loop_attach_timer(&c->loop->loop, &w->timer, tls_timed_out) != STATUS_OK)
		return false;
	w->timed = true;
	w->until_ns = clock_after_ms(net_tls_handshake_ms(c->slot->tls));
	loop_set_timer(&c->loop->loop, &w->timer, w->until_ns);
	s->ssl = net_tls_session(c->slot->tls, c);
	tls_count(c);
	return s->ssl && tls_attach_bio(s->ssl, c->loop->tls);
}

/* Appends the alert that ends TLS to the output. */
static void
tls_say_end(struct tls_stream *s)
{
	if (!s->open || s->broken || s->ending)
		return;
	ERR_clear_error();
	(void)SSL_shutdown(s->ssl);
}

static bool
tls_shutdown(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);

	tls_say_end(s);
	s->ending = true;
	if (!tls_send(c))
		return false;
	return s->flight || tls_below(c)->shutdown(c);
}

static void
tls_close(struct net_conn *c, bool reset)
{
	struct tls_stream *s = tls_of(c);
	struct buf *out = &c->loop->tls->out;
	struct str last;

	if (!reset && !s->flight && !s->top) {
		tls_say_end(s);
		last = buf_str(out);
		if (last.len)
			(void)tls_below(c)->try_write(c, &last, 1);
		buf_clear(out);
	}
	tls_below(c)->close(c, reset);
}

static void
tls_finish_closing(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);

	tls_drop_work(s);
	tls_drop_ssl(s);
	net_conn_gone(c);
}

static void
tls_on_closed(struct net_conn *c)
{
	struct tls_stream *s = tls_of(c);

	tls_drop_flight(s);
	if (s->top)
		tls_wrote(c, false);
	if (s->work && s->work->posted)
		s->work->closed = true;
	else
		tls_finish_closing(c);
}

const struct net_io net_tls_io = {
	.stream_bytes = sizeof(struct tls_stream),
	.open = tls_open,
	.read = tls_read,
	.probe = tls_probe,
	.local = tls_local,
	.try_write = tls_try_write,
	.write = tls_write,
	.unwritten = tls_unwritten,
	.unconfirmed = tls_unconfirmed,
	.shutdown = tls_shutdown,
	.output_bytes = tls_output_bytes,
	.close = tls_close,
	.on_read = tls_on_read,
	.on_written = tls_on_written,
	.on_closed = tls_on_closed,
};
