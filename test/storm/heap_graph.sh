#!/bin/sh
# heap_graph.sh: snapshots of large random heaps have the references that Lua's
# debug library shows.
# LJP_HEAP_SEEDS  how many heaps (2)
exec "$SOURCE_DIR/test/e2e/heap_graph.sh" 1 "${LJP_HEAP_SEEDS:-2}" 10000
