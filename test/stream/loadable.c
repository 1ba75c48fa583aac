/* A library that a test loads and unloads. Two of them differ in one letter. */
#define PASTE(a, b) a##b
#define NAME(letter) PASTE(loadable_, letter)

int NAME(LJP_LETTER)(int x);

int NAME(LJP_LETTER)(int x)
{
  return x * 3 + 1;
}
