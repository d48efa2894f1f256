//! Writes the files that are generated from the table of PJRT's C API.

use std::fs;
use std::io::Result;

use purlin_pjrt_abi::files;

fn main() -> Result<()> {
    for file in files::all() {
        fs::write(file.full_path(), file.text)?;
        println!("{}", file.path);
    }
    Ok(())
}
