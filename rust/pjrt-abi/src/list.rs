//! The table as a list of macro calls, `tests/cpp/pjrt_abi.inc`: what tests of C++ compare with the header of this
//! crate, with XLA's, and with what a plugin answers.

use std::fmt::Write;

use super::c::type_name;
use super::names::{slot, snake};
use super::table::Table;

/// The version of the header that is at hand, of PyPI's tensorflow-cpu 2.21: it knows nothing newer.
const HEADER_AT_HAND: u32 = 90;

/// The list.
pub(crate) fn macros(table: &Table) -> String {
    let mut out = "\
// Written by `cargo run -p purlin-pjrt-abi` from rust/pjrt-abi/pjrt.abi: change that.
//
// STRUCT(XLA's name, ours, sizeof, struct_size of 0.115 or 0)
// FIELD(XLA's struct, ours, XLA's field, ours, offset)
// VALUE(XLA's name, value)
// SLOT(index, XLA's name, ours, offset, arguments)
// EXTENSION(type, XLA's struct, ours, XLA's slot, ours, offset, XLA's name of the function, arguments)
// With NEWER_ before it: what version 0.90 does not have.
"
    .to_owned();
    let newer = |since: u32| if since > HEADER_AT_HAND { "NEWER_" } else { "" };
    for of in &table.enums {
        for (value, (member, since)) in of.members.iter().enumerate() {
            writeln!(out, "{}VALUE(PJRT_{}_{member}, {value})", newer(*since), of.prefix).unwrap();
        }
    }
    for of in table.all_structs() {
        let (placed, name) = (table.placed(of), type_name(&of.name));
        let last = of.fields.iter().map(|field| field.since).max().unwrap_or(0).max(of.since);
        let size = if of.is_sized { placed.struct_size() } else { 0 };
        writeln!(out, "{}STRUCT(PJRT_{}, {name}, {}, {size})", newer(last), of.name, placed.layout.size).unwrap();
        for (field, offset) in of.fields.iter().zip(&placed.offsets) {
            let newer = newer(field.since.max(of.since));
            // XLA's unions have no name: their first member stands for them.
            let theirs = field.members.first().map_or(&field.name, |(name, _)| name);
            writeln!(out, "{newer}FIELD(PJRT_{}, {name}, {theirs}, {}, {offset})", of.name, field.name).unwrap();
        }
    }
    for (index, of) in table.functions.iter().enumerate() {
        let (newer, offset) = (newer(of.since), Table::offset_of_slot(index));
        let arguments = type_name(&of.arguments.name);
        writeln!(out, "{newer}SLOT({index}, PJRT_{}, {}, {offset}, {arguments})", of.name, snake(&of.name)).unwrap();
    }
    for of in &table.extensions {
        let ours = type_name(&of.name) + "Extension";
        for (index, function) in of.functions.iter().enumerate() {
            let (newer, name) = (newer(function.since.max(of.since)), slot(&of.name, &function.name));
            let offset = 24 + 8 * index;
            // The FFI's slots have short names upstream, too.
            let theirs = if of.name == "FFI" { name.clone() } else { format!("PJRT_{}", function.name) };
            let (of, call, arguments) = (&of.name, &function.name, type_name(&function.arguments.name));
            let slots = format!("PJRT_{of}_Extension, {ours}, {theirs}, {name}, {offset}");
            writeln!(out, "{newer}EXTENSION({of}, {slots}, PJRT_{call}, {arguments})").unwrap();
        }
    }
    out
}
