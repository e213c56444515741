/*
 * A twin of the world that loops and connections live in: one thread, virtual time, streams in
 * memory. Everything that is left to chance outside is drawn from a seed here: which ready fiber
 * goes on first, how long bytes travel and into how many pieces they fall, how much a write takes,
 * when the pool comes to its work. The same seed gives the same run, to the last byte.
 *
 * There is one world at a time. Loops run on it by `twin_loop_ops`, a host by `twin_io`. Scripts
 * play the clients: functions on fibers of a loop of their own, outside the server.
 *
 * base/clock.h and base/rand.h are answered by the world, too: a program that links twin_clock.c
 * takes neither from base/.
 */
#ifndef FROND_TESTS_TWIN_H
#define FROND_TESTS_TWIN_H

#include "base/str.h"
#include "loop/loop.h"
#include "loop/wait.h"
#include "net/io.h"

/* ---- The world ---- */

void twin_begin(uint64_t seed);
/* Every loop on it has ended, and every script. */
void twin_end(void);

/* Evenly in [0, below). */
uint64_t twin_draw(uint64_t below);
/* True in `percent` of a hundred cases. */
bool twin_chance(unsigned percent);

uint64_t twin_now_ns(void);
uint64_t twin_now_ms(void);

/* Time passes while the code that runs computes. */
void twin_compute(uint64_t ns);

/* Whether there are more processors than threads; in a new world there are not. */
void twin_set_processors_to_spare(bool spare);

/* How often loops have let other threads have their processor, in this world. */
uint64_t twin_ways_given(void);

/* Adds to the trace. */
void twin_note(const char *what, uint64_t a, uint64_t b);
/* What has happened so far, in one number: equal for equal seeds. */
uint64_t twin_trace(void);

/* Lets happen what can happen until every script has ended. */
void twin_settle(void);

extern const struct loop_ops twin_loop_ops;
extern const struct net_io twin_io;

/* ---- Scripts ---- */

/* Runs `fn(arg)` on a fiber outside the server. */
void twin_script(void (*fn)(void *arg), void *arg);
void twin_sleep_ms(uint64_t ms);

/* ---- A client's end of a connection; for scripts ---- */

struct twin_client;

enum twin_way {
	TWIN_WAY_ANY,   /* perhaps narrow, perhaps long */
	TWIN_WAY_SHORT, /* wide, and a millisecond long at most: for who measures time */
};

/* To a listener on "twin:PORT". It may yet be refused, which reads as a reset. The world's. */
struct twin_client *twin_connect(uint16_t port, enum twin_way way);

/* Waits while the way is full. False if the connection is broken, before or during it. */
bool twin_send(struct twin_client *c, struct str data);
/* As above, in pieces with pauses between them. */
bool twin_send_slowly(struct twin_client *c, struct str data, uint64_t pause_ms);

enum twin_got {
	TWIN_GOT_BYTES,
	TWIN_GOT_END,
	TWIN_GOT_RESET,
	TWIN_GOT_NOTHING, /* until the deadline */
};

/* Waits for some bytes, at most `max`, and appends them to what `ret` points to. */
enum twin_got twin_receive(struct twin_client *c, char *ret, size_t max, size_t *ret_n,
			   uint64_t deadline_ns);

void twin_shutdown(struct twin_client *c);          /* sends nothing more */
void twin_close(struct twin_client *c, bool reset); /* reads nothing more, either */

/* ---- Seeds ---- */

/* Fails the run and names its seed. */
#define twin_check(what) twin_check_at((what), #what, __FILE__, __LINE__)
void twin_check_at(bool ok, const char *what, const char *file, int line);

/*
 * Runs `fn` in a world of its own for `count` seeds, from a first one that is different each time.
 * FROND_TWIN_SEED=N runs that one only, and FROND_TWIN_TRACE=1 prints what happens. Returns the
 * trace of the last seed.
 */
uint64_t twin_run_seeds(void (*fn)(void), unsigned count);
/* One world with that seed; returns its trace. */
uint64_t twin_run_seed(void (*fn)(void), uint64_t seed);

/* ---- Between the twin's own files ---- */

/* Has `fn(arg)` called at that moment, off any fiber; `loop`'s thread, or none if NULL. */
struct twin_event *twin_at(uint64_t at_ns, struct loop *loop, void (*fn)(void *arg), void *arg);
/* Takes back what was not called yet. */
void twin_cancel(struct twin_event *e);
struct loop *twin_outside(void);
/* Frees streams and listeners. */
void twin_drop_streams(void);

#endif
