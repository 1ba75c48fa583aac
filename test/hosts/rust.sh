#!/bin/sh
# A Rust program that embeds the library, built by Debian's compiler: threads
# with VMs on the stacks that Rust's runtime makes, with its small alternate
# stacks.
. "$(dirname "$0")/record_lib.sh"
need rustc

cat > "$tmp/host.rs" << 'EOL'
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int};
use std::thread;

#[link(name = "luajit-5.1")]
extern "C" {
    fn luaL_newstate() -> *mut c_void;
    fn luaL_openlibs(l: *mut c_void);
    fn luaL_loadstring(l: *mut c_void, s: *const c_char) -> c_int;
    fn lua_pcall(l: *mut c_void, args: c_int, results: c_int, f: c_int) -> c_int;
    fn lua_tolstring(l: *mut c_void, i: c_int, len: *mut usize) -> *const c_char;
    fn lua_close(l: *mut c_void);
}

const WORK: &str = "
local function toss(n)
  local t = {}
  for i = 1, n do t[i] = i * 7919 % 251 end
  table.sort(t, function(a, b) return a < b end)
  return t[1] + t[n]
end
local function deep(n)
  if n == 0 then return toss(200) end
  return deep(n - 1) + 1
end
local sum = 0
for i = 1, 600 do sum = sum + deep(i % 150) end
return tostring(sum)
";

fn work() -> String {
    unsafe {
        let l = luaL_newstate();
        luaL_openlibs(l);
        let code = CString::new(WORK).unwrap();
        let failed = luaL_loadstring(l, code.as_ptr()) != 0
            || lua_pcall(l, 0, 1, 0) != 0;
        let text = CStr::from_ptr(lua_tolstring(l, -1, std::ptr::null_mut()));
        let text = text.to_string_lossy().into_owned();
        lua_close(l);
        format!("{} {}", failed, text)
    }
}

fn main() {
    println!("main {}", work());
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(work)).collect();
    for t in threads {
        println!("thread {}", t.join().unwrap());
    }
}
EOL
/usr/bin/rustc -O "$tmp/host.rs" -L native="$build/lib" -o "$tmp/host" \
  > "$tmp/rustc.log" 2>&1 || fail "it does not compile"
LD_LIBRARY_PATH=$build/lib "$tmp/host" > "$tmp/wanted.txt"
record_start "$tmp/host"
record_end
same output "$(cat "$tmp/wanted.txt")" "$(cat "$tmp/host.log")"
whole
names 'toss '
