/*
 * The end of the process when its C++ code, which is RocksDB, gets no memory.
 *
 * Code in C is told so by NULL, and refuses what it was asked for. C++ throws an exception, which
 * cannot pass through RocksDB's C interface: on a thread of RocksDB, or below a call from here, it
 * would abort the process without a word. So a handler that the C++ library calls before it throws
 * writes the last line of the log and ends the process. Nothing that was acknowledged is lost: it
 * is in the store's log, and the next start finds it there.
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

typedef void new_handler(void);
typedef new_handler *set_new_handler(new_handler *handler);

/* On any thread, with any lock of RocksDB held. */
static void
memory_ran_out(void)
{
	log_event(LOG_LEVEL_ERROR, "out_of_memory",
		  "text=\"the store's engine got no memory; everything acknowledged is there after "
		  "the next start\" exit_code=%d",
		  CLI_NO_MEMORY);
	/* Not exit(): its handlers might want memory, or a lock that this thread holds. */
	_exit(CLI_NO_MEMORY);
}

void
cli_watch_memory(void)
{
	/* std::set_new_handler(void (*)()), which RocksDB has brought along. */
	void *symbol = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
	set_new_handler *set;

	_Static_assert(sizeof(set) == sizeof(symbol), "dlsym() gives functions as data pointers");
	if (!symbol)
		return;
	memcpy(&set, &symbol, sizeof(set));
	(void)set(memory_ran_out);
}
