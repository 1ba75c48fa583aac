/*
** ljprof embed: stores the symbols of machine code in a file, so that it reads
** the same on other machines (RFC 1, section 11). The file is read twice: first
** to collect addresses, then to copy it.
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/stream/reader.h"
#include "parsers/symbols/symbols.h"
#include "tools/rewrite/stream_out.h"
#include "tools/shared/command.h"
#include "tools/shared/outfile.h"

static const char help[] =
    "Usage: ljprof embed [-o OUT [--force]] FILE\n"
    "Looks up the names of all machine code in a profile (functions, inlined\n"
    "functions, source lines) and stores them in the file. The file then reads "
    "the\n"
    "same on a machine that has other programs and libraries.\n"
    "\n"
    "  -o OUT    write to OUT ('-': standard output). Without -o, FILE is "
    "replaced\n"
    "            once the new file is complete.\n"
    "  --force   replace OUT if it exists\n"
    "  --help    show this help\n"
    "\n"
    "Debug files are searched by build-id and debuglink in the folders of\n"
    "LJPROF_DEBUG_PATH (default /usr/lib/debug). If DEBUGINFOD_URLS is set, "
    "its\n"
    "servers are asked too.\n"
    "\n"
    "Exit code: 0 success, 1 failure, 2 wrong usage.\n";

/* A module that frames refer to. */
struct used {
  struct ljp_rec_module record; /* Its strings are in the arena. */
  uint32_t handle;
  struct used *next;
};

struct embed {
  const char *file;
  struct ljp_symbols *symbols;
  struct ljp_arena arena; /* Maps module ids to struct used. */
  struct used *first, **end;
  bool no_memory;
  bool has_symbols, closed;
  bool handed_out;
  uint64_t addresses;
};

static struct ljp_str embed_keep_string(struct embed *e, struct ljp_str s)
{
  char *copy = ljp_arena_take(&e->arena, s.len + 1, &e->no_memory);
  if (!copy) {
    e->no_memory = true;
    return (struct ljp_str){"", 0};
  }
  if (s.len)
    memcpy(copy, s.data, s.len);
  return (struct ljp_str){copy, s.len};
}

static struct used *embed_use(struct embed *e,
                              const struct ljp_rec_module *module)
{
  struct used *used = ljp_arena_find(&e->arena, LJP_REC_MODULE, module->id);
  if (used)
    return used;
  used = ljp_arena_take(&e->arena, sizeof *used, &e->no_memory);
  if (!used || !ljp_arena_put(&e->arena, LJP_REC_MODULE, module->id, used,
                              &e->no_memory)) {
    e->no_memory = true;
    return NULL;
  }
  *used = (struct used){.record = *module};
  used->record.build_id = embed_keep_string(e, module->build_id);
  used->record.path = embed_keep_string(e, module->path);
  used->handle = ljp_symbols_module(e->symbols, module->path, module->build_id,
                                    module->size, module->flags);
  *e->end = used;
  e->end = &used->next;
  return used;
}

/* Looks up the address itself for a leaf, and the address minus one for a
** caller: a node may be both. */
static void embed_want_node(struct embed *e, const struct ljp_model *model,
                            const struct ljp_rec_node *node)
{
  const struct ljp_rec_module *module;
  if (ljp_frame_shape(node->kind) != LJP_SHAPE_ADDR || !node->ref ||
      !(module = ljp_model_module(model, node->ref)))
    return;
  struct used *used = embed_use(e, module);
  if (!used || ljp_symbols_want(e->symbols, used->handle, node->value) ||
      (node->kind != LJP_FRAME_CFUNC && node->value &&
       ljp_symbols_want(e->symbols, used->handle, node->value - 1)))
    e->no_memory = true;
}

/* First pass: collects modules and addresses. */
static int embed_collect(struct embed *e)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  enum ljp_status status = ljp_reader_open(&reader, e->file);
  while (!status && !e->no_memory) {
    status = ljp_reader_next(&reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    if (item->what == LJP_REC_NODES)
      embed_want_node(e, &reader.model, &item->u.node);
    e->has_symbols |= item->what == LJP_REC_SYMBOL;
  }
  if (status)
    ljp_command_error("embed", "%s: %s", e->file, reader.error);
  else if (e->no_memory)
    ljp_command_error("embed", "%s: out of memory", e->file);
  else
    e->closed = item->u.finish.clean;
  ljp_reader_fini(&reader);
  return status || e->no_memory ? LJP_EXIT_FAILED : -1;
}

static void embed_put_symbol(struct embed *e, struct ljp_stream_out *out,
                             const struct used *used, uint64_t address,
                             const struct ljp_symbol *symbol)
{
  static const struct ljp_symbol_frame nothing = {"", "", 0};
  uint32_t count = symbol->count ? symbol->count : 1;
  const struct ljp_symbol_frame *f = symbol->count ? symbol->frames : &nothing;
  if (ljp_out_is_full(out) || !out->len) {
    ljp_out_block_end(out);
    ljp_out_record(out, LJP_REC_MODULE, &used->record);
  }
  for (uint32_t level = 0; level < count; level++, f++) {
    struct ljp_rec_symbol record = {
        .module = used->record.id,
        .address = address,
        .level = level,
        .line = f->line,
        .function = {f->function, (uint32_t)strlen(f->function)},
        .file = {f->file, (uint32_t)strlen(f->file)}};
    ljp_out_record(out, LJP_REC_SYMBOL, &record);
  }
  e->addresses += symbol->count != 0;
}

static void embed_put_symbols(struct embed *e, struct ljp_stream_out *out,
                              const struct ljp_block_head *head)
{
  struct ljp_block_head own = *head;
  own.producer = 0;
  own.flags = 0;
  out->next_seq = head->seq + 1;
  out->compress = true;
  ljp_out_block(out, &own);
  for (const struct used *used = e->first; used; used = used->next) {
    uint64_t address;
    const struct ljp_symbol *symbol;
    ljp_out_block_end(out);
    for (size_t i = 0;
         (symbol = ljp_symbols_each(e->symbols, used->handle, i, &address));
         i++)
      embed_put_symbol(e, out, used, address, symbol);
  }
  ljp_out_block_end(out);
}

/* Second pass: copies the file and inserts the symbols after its first
** block. */
static int embed_write(struct embed *e, struct ljp_stream_out *out, int fd)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  uint64_t more_seq = 0;
  enum ljp_status status = ljp_reader_open(&reader, e->file);
  while (!status && !out->error) {
    status = ljp_reader_next(&reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    if (item->what == LJP_ITEM_GAP)
      ljp_out_copy(out, fd, item->u.gap.offset, item->u.gap.bytes, 0);
    if (item->what != LJP_ITEM_BLOCK)
      continue;
    const struct ljp_block_head head = item->block->head;
    ljp_out_copy(out, fd, item->block->offset,
                 LJP_BLOCK_HEAD_BYTES + head.stored_len, more_seq);
    if (!e->handed_out) {
      embed_put_symbols(e, out, &head);
      more_seq = out->next_seq - head.seq - 1;
      e->handed_out = true;
    }
  }
  if (status)
    ljp_command_error("embed", "%s: %s", e->file, reader.error);
  ljp_reader_fini(&reader);
  return status ? LJP_EXIT_FAILED : LJP_EXIT_OK;
}

static int embed_file(struct embed *e, const char *to, bool force, int fd)
{
  struct ljp_outfile file;
  struct ljp_stream_out out;
  int code = embed_collect(e);
  if (code >= 0)
    return code;
  if (!to && e->has_symbols) {
    ljp_command_note("embed", "%s: already has its symbols", e->file);
    return LJP_EXIT_OK;
  }
  if (!to && !e->closed) {
    ljp_command_error("embed",
                      "%s: was not closed, and a session may still write to"
                      " it: give another file with -o",
                      e->file);
    return LJP_EXIT_FAILED;
  }
  enum ljp_status status = ljp_symbols_resolve(e->symbols);
  if (status) {
    ljp_command_error("embed", "%s: cannot look up symbols: %s", e->file,
                      ljp_status_text(status));
    return LJP_EXIT_FAILED;
  }
  for (size_t i = 0; ljp_symbols_notice(e->symbols, i); i++)
    ljp_command_note("embed", "%s", ljp_symbols_notice(e->symbols, i));
  code = ljp_outfile_open(&file, "embed", to ? to : e->file, force || !to);
  if (code >= 0)
    return code;
  if (!ljp_out_begin(&out, file.fd)) {
    ljp_command_error("embed", "%s", ljp_status_text(LJP_ERR_MEM));
    code = LJP_EXIT_FAILED;
  } else {
    e->handed_out =
        e->has_symbols; /* Nothing to insert: the output is a copy. */
    code = embed_write(e, &out, fd);
  }
  ljp_out_end(&out);
  if (code)
    ljp_outfile_abort(&file);
  else
    code = ljp_outfile_commit(&file, out.error);
  return code;
}

int ljp_command_embed(int argc, char **argv)
{
  struct embed e = {0};
  const char *to = NULL;
  bool force = false;
  const struct ljp_flag flags[] = {{"--force", &force, NULL},
                                   {"-o", NULL, &to}};
  int code = ljp_command_options("embed", help, argc, argv, flags, 2, &e.file);
  if (code >= 0)
    return code;
  int fd = ljp_out_source("embed", e.file,
                          "such files have the names of machine code already");
  if (fd < 0)
    return LJP_EXIT_FAILED;
  ljp_arena_init(&e.arena, LJP_MODEL_EPOCH_BYTES);
  e.end = &e.first;
  e.symbols = ljp_symbols_new(NULL);
  if (e.symbols) {
    code = embed_file(&e, to, force, fd);
  } else {
    ljp_command_error("embed", "%s", ljp_status_text(LJP_ERR_MEM));
    code = LJP_EXIT_FAILED;
  }
  ljp_symbols_free(e.symbols);
  ljp_arena_fini(&e.arena);
  close(fd);
  return code;
}
