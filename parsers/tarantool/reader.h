/*
** Reads what Tarantool's profilers write (format.h), one event at a time, in
** the order of the file: the symbols of the table, then memory events or
** samples with the symbols between them.
**
** Input is untrusted. The reader keeps a window of the file, which grows only
** for a sample or a string that is really there, up to
** LJP_TARANTOOL_MAX_BYTES; a longer one ends the reading like damage does. The
** format has nothing to find the next event by, so reading ends at the first
** byte that makes no sense. One thread a reader.
*/
#ifndef LJP_PARSERS_TARANTOOL_READER_H
#define LJP_PARSERS_TARANTOOL_READER_H

#include "parsers/base/str.h"
#include "parsers/stream/input.h"
#include "src/base/tarantool.h"

#ifdef LJP_DEBUG /* The window moves and grows all the time. */
#define LJP_TARANTOOL_WINDOW_BYTES 160u
#define LJP_TARANTOOL_MAX_BYTES (1u << 16)
#else
#define LJP_TARANTOOL_WINDOW_BYTES (1u << 18)
#define LJP_TARANTOOL_MAX_BYTES (1u << 24)
#endif

#define LJP_TARANTOOL_ERROR_BYTES 192
#define LJP_TARANTOOL_MEMORY_BYTES (1u + 6u * 10u) /* Of a memory event. */

enum ljp_tarantool_what {
  LJP_TARANTOOL_HEAD,   /* A part begins: head. */
  LJP_TARANTOOL_SYMBOL, /* symbol */
  LJP_TARANTOOL_MEMORY, /* memory */
  LJP_TARANTOOL_SAMPLE, /* sample */
  LJP_TARANTOOL_FINISH  /* Nothing more; see reader->whole. */
};

struct ljp_tarantool_head {
  char magic[LJP_TARANTOOL_MAGIC_BYTES];
  uint8_t version;
};

struct ljp_tarantool_symbol {
  uint8_t kind;        /* enum ljp_ljs_kind */
  uint64_t key;        /* Address; TRACE: number. */
  uint64_t proto;      /* TRACE: address of the prototype. */
  uint64_t line;       /* LFUNC: of the definition; TRACE: where it starts. */
  struct ljp_str text; /* LFUNC: chunk; CFUNC: name. */
};

struct ljp_tarantool_memory {
  uint8_t kind;           /* enum ljp_ljm_kind */
  uint8_t source;         /* enum ljp_ljm_source */
  uint64_t place;         /* LFUNC, CFUNC: address; TRACE: number; else 0. */
  uint64_t line;          /* LFUNC */
  uint64_t address, size; /* FREE: of the block that is freed. */
  uint64_t old_address, old_size; /* REALLOC; else 0. */
};

/* The bytes are whole and well formed: walk.h walks them. */
struct ljp_tarantool_sample {
  uint8_t state;        /* enum ljp_ljp_state */
  const uint8_t *bytes; /* All of it, from its header on. */
  uint32_t size;
};

struct ljp_tarantool_event {
  uint8_t what;    /* enum ljp_tarantool_what */
  uint64_t offset; /* In the file. */
  union {
    struct ljp_tarantool_head head;
    struct ljp_tarantool_symbol symbol;
    struct ljp_tarantool_memory memory;
    struct ljp_tarantool_sample sample;
  } u;
};

struct ljp_tarantool_reader {
  struct ljp_input input;
  uint8_t *window; /* room bytes and a slack of zeros behind `end`. */
  uint8_t *at, *end;
  size_t room;
  uint64_t base; /* Offset of the window in the file. */
  uint8_t part;  /* What is read next. */
  bool eof, done;
  bool whole;           /* FINISH: the file is whole. */
  bool memory, samples; /* Which events it has. */
  uint64_t symbols, events;
  uint64_t rest; /* FINISH: bytes behind the end of the events. */
  struct ljp_tarantool_event event;
  enum ljp_status failed;
  char error[LJP_TARANTOOL_ERROR_BYTES]; /* FINISH and not whole: how it ends.
                                         ** After a failure: why. */
};

/* Whether a file that begins so is for this reader. */
bool ljp_tarantool_begins(const uint8_t *bytes, size_t size);

/* Takes the input over. LJP_ERR_MEM. */
enum ljp_status ljp_tarantool_init(struct ljp_tarantool_reader *reader,
                                   const struct ljp_input *input);
enum ljp_status ljp_tarantool_memory(struct ljp_tarantool_reader *reader,
                                     const void *data, size_t size);
void ljp_tarantool_fini(struct ljp_tarantool_reader *reader);

/*
** The next event, borrowed until the next call. After FINISH it is FINISH
** again.
**
** On failure reader->error is a sentence. LJP_ERR_VERSION: a version that this
** program does not read. LJP_ERR_FORMAT: it has no events that could be read.
** LJP_ERR_IO. LJP_ERR_MEM. Each later call returns the same error.
*/
enum ljp_status ljp_tarantool_next(struct ljp_tarantool_reader *reader,
                                   const struct ljp_tarantool_event **event);

/* The next memory events, at most `most`, as long as nothing else comes; faster
** than one by one. 0: ljp_tarantool_next() has to read what comes. */
uint32_t ljp_tarantool_next_memory(struct ljp_tarantool_reader *reader,
                                   struct ljp_tarantool_memory *events,
                                   uint32_t most);

/* The next samples, in the same way. They are valid until the next call of this
** function or of ljp_tarantool_next(). */
uint32_t ljp_tarantool_next_samples(struct ljp_tarantool_reader *reader,
                                    struct ljp_tarantool_sample *samples,
                                    uint32_t most);

#endif
