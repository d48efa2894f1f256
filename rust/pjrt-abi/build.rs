//! Writes the Rust declarations of `pjrt.abi`.

#![allow(unreachable_pub, dead_code, reason = "files of the library, which has more uses for them")]

use std::path::Path;
use std::{env, fs};

#[path = "src/layout.rs"]
mod layout;
#[path = "src/names.rs"]
mod names;
#[path = "src/read.rs"]
mod read;
#[path = "src/rust.rs"]
mod rust;
#[path = "src/table.rs"]
mod table;

fn main() {
    for file in ["pjrt.abi", "src"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let declarations = rust::declarations(&table::Table::of_this_crate());
    fs::write(Path::new(&out).join("declarations.rs"), declarations).expect("the folder of this build can be written");
}
