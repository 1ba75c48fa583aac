# Which C library we build for: LJP_MUSL.
include(CheckCSourceCompiles)
check_c_source_compiles("#include <features.h>
#ifdef __GLIBC__
#error
#endif
int main(void) { return 0; }" LJP_MUSL)
