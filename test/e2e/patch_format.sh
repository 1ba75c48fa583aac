#!/bin/sh
# cmake/apply-patch.awk puts a hook into the function that the patch names, once,
# whatever stands around that function. If it cannot, it says why in one line
# and leaves the file alone. The trees here are made up.
. "$(dirname "$0")/lib.sh"

apply=$SOURCE_DIR/cmake/apply-patch.awk
mkdir -p src
# fresh: the file that the patches below change.
fresh() {
  cat > src/vm.c << 'END'
/* A file as LuaJIT's are: gc_step(g) is named here, too. */
#define SIZE(p)	((p)->size)  /* A macro
** whose comment goes on: */
typedef struct State {
  int phase;	/* Of the collector. */
} State;

static void gc_start(State *g);
static int once(int a) { return a; }

#if HAS_BOTH
int gc_new(void *f)
#else
int gc_open(void *f)
#endif
{
  return once(0);
}

static void gc_start(State *g)
{
  g->phase = 1;
}

static int gc_step(State *g,
		   int limit)
{
  switch (g->phase) {
  case 1:
    g->phase = 2;  /* The next one. */

    return limit;
  case 2:
#if HAS_MORE
    g->phase  =  2;
#endif
    goto done;
  }
done:
  return 0;
}

LJLIB_CF(collect)	LJLIB_REC(.)
{
  gc_start(L);
}
END
  cp src/vm.c before.c
}

# patched WHAT: the patch on stdin fits; out.diff is what it changed.
patched() {
  fresh
  cat > p.patch
  awk -v tree=. -f "$apply" p.patch > out.txt || fail "$1: $(cat out.txt)"
  diff before.c src/vm.c | grep '^[<>]' > out.diff || :
}

# unfit WHAT TEXT: the patch on stdin does not fit.
unfit() {
  fresh
  cat > p.patch
  refuses "$1" 1 "$2" awk -v tree=. -f "$apply" p.patch
  cmp -s before.c src/vm.c || fail "$1: the file was changed"
  same "nothing else is left" "vm.c" "$(ls src)"
}

patched "a line that stands in two functions" << 'END'
Prose, with a line that looks like a hunk.
@@ gc_nothing

--- src/vm.c
@@ gc_start
   g->phase=1;
+  hook(1);
@@ gc_step
+    hook(2);
     g->phase = 2;
     return limit;
@@ State
   int phase;
+  int ours;
 } State;
@@ *
-#define SIZE(p) ((p)->size)
+#define SIZE(p)	((p)->size & ~1)
@@ gc_open
-  return once(0);
+  return once(1);
@@ collect
   gc_start(L);
+  hook(3);
END
same "each hook is in its function" "$(cat << 'END'
< #define SIZE(p)	((p)->size)  /* A macro
> #define SIZE(p)	((p)->size & ~1)
>   int ours;
<   return once(0);
>   return once(1);
>   hook(1);
>     hook(2);
>   hook(3);
END
)" "$(cat out.diff)"

patched "alternatives" << 'END'
--- src/vm.c
@@ gc_step
   g->phase = 3;
+  hook(3);
@@ or gc_finish
   return 0;
+  hook(4);
@@ or gc_step
     goto done;
+    hook(5);
END
same "the one that fits is taken" ">     hook(5);" "$(cat out.diff)"

patched "where there is a function" << 'END'
--- src/vm.c
@@ where there is gc_start
   g->phase=1;
+  hook(6);
@@ where there is gc_finish
   g->phase = 1;
+  hook(7);
END
same "a hunk for a function that is not there is left out" ">   hook(6);" \
  "$(cat out.diff)"
unfit "a function that is there, without the line" \
  "src/vm.c: collect: there is no line 'g->phase = 1;'" << 'END'
--- src/vm.c
@@ where there is collect
   g->phase = 1;
+  hook();
END

unfit "a function that is gone" "src/vm.c: there is no gc_finish" << 'END'
--- src/vm.c
@@ gc_finish
   g->phase = 1;
+  hook();
END
unfit "a line in another function" \
  "src/vm.c: collect: there is no line 'g->phase = 1;'" << 'END'
--- src/vm.c
@@ gc_start
   g->phase = 1;
+  hook();
@@ collect
   g->phase = 1;
+  hook();
END
unfit "a line in functions only" "src/vm.c: outside of functions: there is" << 'END'
--- src/vm.c
@@ *
 goto done;
+hook();
END
unfit "a line that is there twice" \
  "src/vm.c: gc_step: 'g->phase = 2;' stands there 2 times" << 'END'
--- src/vm.c
@@ gc_step
   g->phase = 2;
+  hook();
END
unfit "lines that are not together" "the lines from 'g->phase = 2;' on" << 'END'
--- src/vm.c
@@ gc_step
   g->phase = 2;
   goto done;
+  hook();
END
unfit "two alternatives that fit" "src/vm.c: gc_step: two alternatives fit" << 'END'
--- src/vm.c
@@ gc_step
   return limit;
+  hook();
@@ or gc_step
   goto done;
+  hook();
END
unfit "a place that no hunk names" \
  "src/vm.c: line 35, in gc_step, has 'g->phase =', too" << 'END'
--- src/vm.c
@@ gc_start
   g->phase = 1;
+  hook();
@@ gc_step
   g->phase = 2;
   return limit;
+  hook();
@@ nowhere else
!g->phase =
END
unfit "a file that is gone" "src/lj_gone.c: there is no such file" << 'END'
--- src/lj_gone.c
@@ gc_step
   return limit;
+  hook();
END
unfit "a patch with line numbers" "line 2 of the patch is no hunk" << 'END'
--- src/vm.c
@@ -20,2 +20,3 @@
   g->phase = 1;
+  hook();
END
unfit "a hunk without a place" "line 2 of the patch: a hunk needs a line" << 'END'
--- src/vm.c
@@ gc_step
+  hook();
END
