//! The files that are generated from the table, and where they belong.

use std::path::{Path, PathBuf};

use super::table::Table;
use super::{c, list, markdown};

/// A generated file.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it belongs, from the root of the repository.
    pub path: &'static str,
    /// What it shall hold.
    pub text: String,
}

impl File {
    /// Where it is.
    pub fn full_path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.path)
    }
}

/// All of them.
pub fn all() -> [File; 3] {
    let table = Table::of_this_crate();
    [
        File { path: "include/purlin/adapters/pjrt_abi.h", text: c::header(&table) },
        File { path: "docs/pjrt-api.md", text: markdown::page(&table) },
        File { path: "tests/cpp/pjrt_abi.inc", text: list::macros(&table) },
    ]
}
