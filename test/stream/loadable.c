/* A library to be loaded and unloaded; two of them differ in a letter. */
#define PASTE(a, b) a##b
#define NAME(letter) PASTE(loadable_, letter)

int NAME(LJP_LETTER)(int x);

int NAME(LJP_LETTER)(int x)
{
  return x * 3 + 1;
}
