/*
** Looks up symbols: reads lines of path, build-id, bytes in memory, flags and
** address, as host.c writes them, and prints the functions, inner first, and
** the line: "inner;outer:LINE". An unknown address is printed as
** "module+0xADDRESS". With -l, the lines of the callers follow. Notices go to
** stderr.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/symbols/symbols.h"

enum { LINES = 1 << 20 };

static struct {
  char name[256];
  uint32_t module;
  uint64_t address;
} asked[LINES];

static struct ljp_str str(const char *text, size_t len)
{
  return (struct ljp_str){text, (uint32_t)len};
}

static void show(const struct ljp_symbol *symbol, bool lines)
{
  for (uint32_t k = 0; k < symbol->count; k++) {
    const struct ljp_symbol_frame *f = &symbol->frames[k];
    const char *slash = strrchr(f->file, '/');
    printf("%s%s", k ? ";" : "", *f->function ? f->function : "?");
    if (lines)
      printf("(%s:%u)", slash ? slash + 1 : f->file, f->line);
  }
  printf(":%u\n", symbol->frames[0].line);
}

int main(int argc, char **argv)
{
  static char line[70000], path[65536], hex[1024];
  struct ljp_symbols_options options = {0};
  bool lines = false;
  size_t count = 0;
  int option;
  while ((option = getopt(argc, argv, "lnt:")) != -1) {
    lines |= option == 'l';
    options.no_dwarf |= option == 'n';
    if (option == 't')
      options.seconds = (unsigned)atoi(optarg);
  }
  struct ljp_symbols *symbols = ljp_symbols_new(&options);
  while (count < LINES && fgets(line, sizeof line, stdin)) {
    uint64_t span, flags, address;
    uint8_t id[512];
    size_t len = 0;
    char *tab = strchr(line, '\t');
    if (!tab)
      return 2;
    *tab = '\0';
    strcpy(path, line);
    char *tab2 = strchr(tab + 1, '\t');
    if (!tab2)
      return 2;
    *tab2 = '\0';
    snprintf(hex, sizeof hex, "%s", tab + 1);
    for (; hex[2 * len] && hex[2 * len + 1]; len++) {
      char two[3] = {hex[2 * len], hex[2 * len + 1], 0};
      id[len] = (uint8_t)strtoul(two, NULL, 16);
    }
    if (sscanf(tab2 + 1, "%" SCNu64 " %" SCNu64 " %" SCNx64, &span, &flags,
               &address) != 3)
      return 2;
    const char *slash = strrchr(path, '/');
    snprintf(asked[count].name, sizeof asked[count].name, "%.255s",
             slash ? slash + 1 : path);
    asked[count].address = address;
    asked[count].module = ljp_symbols_module(symbols, str(path, strlen(path)),
                                             str((char *)id, len), span, flags);
    if (ljp_symbols_want(symbols, asked[count].module, address))
      return 1;
    count++;
  }
  enum ljp_status status = ljp_symbols_resolve(symbols);
  for (size_t i = 0; i < count; i++) {
    const struct ljp_symbol *symbol =
        ljp_symbols_get(symbols, asked[i].module, asked[i].address);
    if (!symbol)
      return 1;
    if (symbol->count)
      show(symbol, lines);
    else
      printf("%s+0x%" PRIx64 "\n", asked[i].name, asked[i].address);
  }
  for (size_t i = 0; ljp_symbols_notice(symbols, i); i++)
    fprintf(stderr, "%s\n", ljp_symbols_notice(symbols, i));
  ljp_symbols_free(symbols);
  return status != LJP_OK;
}
