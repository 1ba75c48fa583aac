# cmake -DDIR=tools/viewer -DOUT=viewer_page.c -P embed-viewer.cmake
#
# Puts the page of `ljprof flame` together and writes it as two C arrays: what
# stands before the data and what stands behind it. Lines that are only a comment
# and indentation are left out; nothing else is changed.
file(STRINGS ${DIR}/order.txt order)
set(js "(() => {\n'use strict';\n")
foreach(name ${order})
  file(READ ${DIR}/${name} text)
  string(APPEND js "${text}")
endforeach()
string(APPEND js "})();")
string(REGEX REPLACE "\n *//[^\n]*" "" js "${js}")
string(REGEX REPLACE "\n[\n ]+" "\n" js "${js}")
file(READ ${DIR}/page.css css)
string(REGEX REPLACE "/\\*[^*]*\\*/\n" "" css "${css}")
string(REGEX REPLACE "\n +" "\n" css "${css}")
file(READ ${DIR}/page.html page)
string(REPLACE "@CSS@" "${css}" page "${page}")
string(REPLACE "@JS@" "${js}" page "${page}")
string(FIND "${page}" "@DATA@" at)
if(at LESS 0)
  message(FATAL_ERROR "${DIR}/page.html has no place for the data")
endif()
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 behind)

set(c "/* Made by cmake/embed-viewer.cmake from tools/viewer. */\n")
string(APPEND c "#include \"tools/page/viewer.h\"\n")
foreach(part before behind)
  file(WRITE ${OUT}.part "${${part}}")
  file(READ ${OUT}.part hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(................................................................................)"
    "\\1\n" hex "${hex}")
  string(APPEND c "\nconst unsigned char ljp_viewer_${part}[] = {\n${hex}};\n"
    "const size_t ljp_viewer_${part}_bytes = sizeof ljp_viewer_${part};\n")
endforeach()
file(WRITE ${OUT} "${c}")
file(REMOVE ${OUT}.part)
