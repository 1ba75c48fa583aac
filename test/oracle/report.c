/*
** What the oracle reports; see report.h.
*/
#define LUA_CORE

#include "test/oracle/report.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/format.h"
#include "src/luajit/frames.h"
#include "src/luajit/functions.h"

enum { PLACES = 4096 };

static const char *const verdict_names[VERDICTS] = {
    "complete", "cut", "deferred", "partly unwound", "wrong"};

/* Where a stack was not complete: a VM routine, or an address outside the
** VM. */
static struct place {
  const char *symbol;
  uint64_t address;
  enum verdict verdict;
  uint32_t reason;
  uint64_t count;
} places[PLACES];
static uint64_t counts[VERDICTS];

void report_note(enum verdict verdict, uint32_t reason, uint64_t rip)
{
  counts[verdict]++;
  if (verdict == COMPLETE)
    return;
  uint32_t offset = 0;
  const char *symbol = ljp_guest_vm_symbol(rip, &offset);
  for (uint32_t i = 0; i < PLACES; i++) {
    struct place *p = &places[i];
    if (!p->count) {
      p->symbol = symbol;
      p->address = symbol ? offset : rip;
      p->verdict = verdict;
      p->reason = reason;
    } else if (p->symbol != symbol || p->address != (symbol ? offset : rip) ||
               p->verdict != verdict || p->reason != reason) {
      continue;
    }
    p->count++;
    return;
  }
}

uint64_t report_count(enum verdict verdict)
{
  return counts[verdict];
}

void report_add(enum verdict verdict, uint64_t count)
{
  counts[verdict] += count;
}

void report_host(uint64_t address)
{
  Dl_info info;
  if (dladdr((void *)(uintptr_t)address, &info) && info.dli_fname) {
    const char *file = strrchr(info.dli_fname, '/');
    fprintf(stderr, "    host %s %s+%#lx\n",
            info.dli_sname ? info.dli_sname : "?",
            file ? file + 1 : info.dli_fname,
            (long)(address - (uint64_t)(uintptr_t)info.dli_fbase));
  } else {
    fprintf(stderr, "    host %#lx\n", (long)address);
  }
}

void report_frames(const char *title, const uint64_t *frame, uint32_t count)
{
  fprintf(stderr, "  %s (%u):\n", title, count);
  for (uint32_t i = 0; i < count && i < 60; i++) {
    uint64_t word = frame[i];
    struct ljp_guest_proto proto;
    uint32_t offset;
    switch (ljp_frame_kind(word)) {
    case LJP_FRAME_LUA:
    case LJP_FRAME_LUA_INLINED:
      if (!ljp_guest_proto(ljp_frame_proto_ref(word), &proto))
        fprintf(stderr, "    lua ?%u:%u\n", ljp_frame_proto_ref(word),
                ljp_frame_line(word));
      else
        fprintf(stderr, "    lua%s %s %s:%u at line %u\n",
                ljp_frame_kind(word) == LJP_FRAME_LUA ? "" : " inlined",
                proto.name, proto.chunk, proto.first_line,
                ljp_frame_line(word));
      break;
    case LJP_FRAME_BUILTIN:
      fprintf(stderr, "    builtin %s\n",
              ljp_guest_builtin((uint32_t)ljp_frame_payload(word)));
      break;
    case LJP_FRAME_CFUNC:
      fprintf(stderr, "    C %#lx\n", (long)ljp_frame_payload(word));
      break;
    default: {
      const char *symbol =
          ljp_guest_vm_symbol(ljp_frame_payload(word), &offset);
      if (symbol)
        fprintf(stderr, "    vm %s+%#x\n", symbol, offset);
      else
        report_host(ljp_frame_payload(word));
    }
    }
  }
}

static int place_by_count(const void *a, const void *b)
{
  const struct place *x = a, *y = b;
  return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

/* Merges the places of one function and one reason. Outside the VM the names
** come from the loader, which the handler must not ask. */
static void report_merge(void)
{
  for (uint32_t i = 0; i < PLACES && places[i].count; i++) {
    struct place *p = &places[i];
    Dl_info info;
    if (p->symbol)
      continue;
    if (!dladdr((void *)(uintptr_t)p->address, &info))
      p->symbol = "compiled code";
    else if (info.dli_sname)
      p->symbol = info.dli_sname;
    else
      p->symbol = strrchr(info.dli_fname, '/')
                      ? strrchr(info.dli_fname, '/') + 1
                      : info.dli_fname;
  }
  for (uint32_t i = 0; i < PLACES && places[i].count; i++)
    for (uint32_t k = 0; k < i; k++) {
      struct place *to = &places[k], *from = &places[i];
      if (to->count && to->verdict == from->verdict &&
          to->reason == from->reason && strcmp(to->symbol, from->symbol) == 0) {
        to->count += from->count;
        from->verdict = COMPLETE;
        break;
      }
    }
}

void report_print(uint64_t steps)
{
  printf("instructions %lu\n", (long)steps);
  for (int v = 0; v < VERDICTS; v++)
    printf("%s %lu %.4f%%\n", verdict_names[v], (long)counts[v],
           steps ? 100.0 * (double)counts[v] / (double)steps : 0);
  report_merge();
  qsort(places, PLACES, sizeof *places, place_by_count);
  for (int i = 0; i < PLACES && places[i].count; i++) {
    const struct place *p = &places[i];
    if (p->verdict != COMPLETE)
      printf("  %-15s %-2u %8lu  %s\n", verdict_names[p->verdict], p->reason,
             (long)p->count, p->symbol);
  }
}
