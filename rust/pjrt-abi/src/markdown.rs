//! The table as a page of the docs: `docs/pjrt-api.md`.

use std::fmt::Write;

use super::c::wrap;
use super::layout::Placed;
use super::table::{Field, Function, Signature, Struct, Table};

const HEAD: &str = "\
# PJRT's C API

Written by `cargo run -p purlin-pjrt-abi` from `rust/pjrt-abi/pjrt.abi`: change that.

A plugin exports `GetPjrtApi`, which returns the table of its functions, `PJRT_Api`: `struct_size`, `extension_start`,
the version (24 bytes), and from offset 40 on a pointer for each slot below. This is version 0.115, whose table has
1144 bytes. Each function takes one struct and returns an error, which is the caller's, or null; two return nothing. A
struct begins with `struct_size`, the end of the last field that its writer knows, and `extension_start`; a plugin that
knows less ignores the rest, and one that knows more does without.

\"Since\" is the first minor version, where upstream's changelog (from 0.29 on) tells it, or else the first in which it
was seen. Offsets are those of 64-bit platforms.

What is proven (`scripts/interop --only '^pjrt_abi$'`): every size, offset, slot and number that version 0.90 has,
against the header in PyPI's `tensorflow-cpu`; the length of the table, and the name and the size of the arguments of
132 slots and of all functions of the extensions below, against what a live plugin of 0.115 (`lammps-jax-pjrt-cpu`)
answers to a struct that is too short. Slots 0, 1, 3, 57, 82 and 93 of that plugin do not look at the size. What no
header at hand proves is the order and the types of the fields inside newer structs: the tables below mark these with
their version.
";

/// The page.
pub(crate) fn page(table: &Table) -> String {
    let mut out = HEAD.to_owned();
    writeln!(out, "\n## Functions\n").unwrap();
    for (index, of) in table.functions.iter().enumerate() {
        let at = format!("slot {index}, offset {}", Table::offset_of_slot(index));
        function(&mut out, table, of, &at);
    }
    for of in &table.extensions {
        writeln!(out, "## Extension {}\n", of.name).unwrap();
        let number = table.enums.iter().find(|of| of.name == "Extension_Type");
        let number = number.and_then(|types| types.members.iter().position(|(name, _)| *name == of.name));
        let number = number.map_or(String::new(), |number| format!("type {number}, "));
        writeln!(out, "{} ({number}version {}{})\n", of.text, of.version, since(", since ", of.since)).unwrap();
        for (index, of) in of.functions.iter().enumerate() {
            function(&mut out, table, of, &format!("offset {}", 24 + 8 * index));
        }
    }
    writeln!(out, "## Structs\n").unwrap();
    for of in &table.structs {
        writeln!(out, "### PJRT_{}\n", of.name).unwrap();
        paragraph(&mut out, &format!("{}{}", of.text, since(" Since ", of.since)));
        fields(&mut out, of, &table.placed(of), 0);
    }
    writeln!(out, "## Types of functions\n\n| type | takes and returns | what |\n|---|---|---|").unwrap();
    for of in &table.callbacks {
        writeln!(out, "| `PJRT_{}` | `{}` | {} |", of.name, signature(&of.signature), of.text).unwrap();
    }
    writeln!(out, "\n## Enumerations\n\n| enumeration | values, from 0 |\n|---|---|").unwrap();
    for of in &table.enums {
        let members = of.members.iter().map(|(name, minor)| format!("{name}{}", since(" since ", *minor)));
        writeln!(out, "| `PJRT_{}`: {} | {} |", of.name, of.text, members.collect::<Vec<_>>().join(", ")).unwrap();
    }
    out
}

fn function(out: &mut String, table: &Table, of: &Function, at: &str) {
    writeln!(out, "### PJRT_{}\n", of.name).unwrap();
    let nothing = if of.returns_error { "" } else { "; returns nothing" };
    paragraph(out, &format!("{} ({at}{}{nothing})", of.text, since(", since ", of.since)));
    let arguments = &of.arguments;
    let skipped = arguments.fields.iter().take_while(|field| field.is_common()).count();
    if arguments.fields.len() > skipped {
        fields(out, arguments, &table.placed(arguments), skipped);
    }
}

fn paragraph(out: &mut String, text: &str) {
    wrap(out, "", "", text, " ");
    out.push('\n');
}

impl Field {
    /// Whether nearly every struct begins with it.
    fn is_common(&self) -> bool {
        ["struct_size", "extension_start"].contains(&self.name.as_str())
    }
}

fn fields(out: &mut String, of: &Struct, placed: &Placed, skipped: usize) {
    writeln!(out, "| at | field | type | role | what |\n|---|---|---|---|---|").unwrap();
    for (field, offset) in of.fields.iter().zip(&placed.offsets).skip(skipped) {
        let c_type = match &field.signature {
            Some(of) => signature(of),
            None if field.members.is_empty() => field.c_type.clone(),
            None => field.members.iter().map(|(name, c)| format!("{c} {name}")).collect::<Vec<_>>().join(" or "),
        };
        let role = role(field);
        let text = [field.text.clone(), since("Since ", field.since)].into_iter().filter(|text| !text.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        writeln!(out, "| {offset} | `{}` | `{c_type}` | {role} | {text} |", field.name).unwrap();
    }
    writeln!(out).unwrap();
}

/// The owner, the count, the lifetime.
fn role(field: &Field) -> String {
    let mut role = field.role.words().to_owned();
    if field.nullable {
        role += ", may be null";
    }
    if let Some(count) = &field.count {
        write!(role, ", `{count}` of them").unwrap();
    }
    if let Some(by) = &field.by {
        write!(role, " by `{by}`").unwrap();
    }
    if let Some(until) = &field.until {
        write!(role, ", until `{until}`").unwrap();
    }
    role
}

fn signature(of: &Signature) -> String {
    let parameters = of.parameters.iter().map(|(c_type, name)| format!("{c_type} {name}")).collect::<Vec<_>>();
    format!("{} ({})", of.returns, parameters.join(", "))
}

fn since(words: &str, minor: u32) -> String {
    match (minor, words.starts_with(|letter: char| letter.is_uppercase() || letter == ' ')) {
        (0, _) => String::new(),
        (_, true) if words.trim_start().starts_with('S') => format!("{words}0.{minor}."),
        _ => format!("{words}0.{minor}"),
    }
}
