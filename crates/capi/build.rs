//! Gives libslackline.so its name for the loader: programs ask for the version of the
//! interface that they were linked with.

/// Goes up when a program that was linked with the last one would no longer work.
const INTERFACE: u32 = 0;

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libslackline.so.{INTERFACE}");
    println!("cargo::rerun-if-changed=build.rs");
}
