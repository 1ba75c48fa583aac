#!/bin/sh
# The lengths and targets of instructions (profilers/unwind/instruction.c) are
# those of objdump, for all code of our library and of a program.
. "$(dirname "$0")/lib.sh"

for file in lib/libluajit-5.1.so.2 bin/account; do
  objdump -d -w "$BUILD_DIR/$file" > code.txt
  "$BUILD_DIR/bin/instructions" < code.txt > out.txt ||
    fail "$file: $(cat out.txt)"
  ok "$file: $(tail -n 1 out.txt)"
done
