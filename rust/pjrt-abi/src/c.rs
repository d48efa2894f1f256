//! The table as a header of C: `purlin/adapters/pjrt_abi.h`. The names begin with `PurlinPjrt`, so that a file may
//! include XLA's headers, too.

use std::fmt::Write;

use super::names::{camel, slot, snake};
use super::table::{Field, Function, Role, Signature, Struct, Table};

const HEAD: &str = "\
/* Purlin: PJRT's C API, version 0.115, with names of our own, so that a file may include XLA's headers, too.
 *
 * Written by `cargo run -p purlin-pjrt-abi` from rust/pjrt-abi/pjrt.abi: change that. docs/pjrt-api.md says for each
 * field what happens to it, and since which version it is there. Facts of XLA's headers xla/pjrt/c/pjrt_c_api.h,
 * pjrt_c_api_*_extension.h and pjrt_c_api_device_event.h, as of August 2026. purlin/adapters/pjrt_tables.h makes and
 * takes such objects.
 *
 * A struct that begins with `struct_size` says with it how much of the struct its writer knows: kPurlinPjrt...Size is
 * that of version 0.115, the end of the last field, without padding. Functions return an error, which is the caller's,
 * or null, and may be called from every thread. */
#ifndef PURLIN_ADAPTERS_PJRT_ABI_H_
#define PURLIN_ADAPTERS_PJRT_ABI_H_

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* NOLINTBEGIN(modernize-use-using): C has no other. */
#ifdef __cplusplus
extern \"C\" {
#endif

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4,
              \"these are the layouts of 64-bit platforms\");
";

const TAIL: &str = "
#ifdef __cplusplus
} /* extern \"C\" */
#endif
/* NOLINTEND(modernize-use-using) */
/* clang-format on */

#endif /* PURLIN_ADAPTERS_PJRT_ABI_H_ */
";

/// The header.
pub(crate) fn header(table: &Table) -> String {
    let mut out = HEAD.to_owned();
    section(&mut out, "Enumerations");
    for of in &table.enums {
        let name = type_name(&of.name);
        doc(&mut out, "", &format!("PJRT_{}: {}", of.name, of.text));
        writeln!(out, "typedef int {name};").unwrap();
        doc(&mut out, "", &format!("Values of {name}."));
        writeln!(out, "enum {{").unwrap();
        for (value, (member, _)) in of.members.iter().enumerate() {
            commented(
                &mut out,
                "  ",
                &format!("k{name}_{member} = {value},"),
                &format!("PJRT_{}_{member}.", of.prefix),
            );
        }
        writeln!(out, "}};\n").unwrap();
    }
    section(&mut out, "Names");
    for name in &table.handles {
        let c = type_name(name);
        commented(&mut out, "", &format!("typedef struct {c} {c};"), &format!("PJRT_{name}: opaque."));
    }
    for of in table.all_structs() {
        let name = type_name(&of.name);
        wrap(&mut out, "", "    ", &format!("typedef struct {name} {name};"), " ");
    }
    for of in &table.callbacks {
        doc(&mut out, "", &format!("PJRT_{}: {}", of.name, of.text));
        wrap(&mut out, "", "    ", &format!("typedef {};", function(&type_name(&of.name), &of.signature)), ", ");
    }
    section(&mut out, "Structs");
    for of in table.all_structs() {
        structure(&mut out, table, of);
    }
    section(&mut out, "Functions");
    doc(&mut out, "", "PJRT_Api: the functions of a plugin.");
    writeln!(out, "typedef struct PurlinPjrtApi {{\n  size_t struct_size; /**< Bytes of this table. */").unwrap();
    writeln!(out, "  PurlinPjrtExtensionBase* extension_start; /**< The first of a chain of extensions. */").unwrap();
    writeln!(out, "  PurlinPjrtApiVersion version; /**< What the plugin was built with. */").unwrap();
    for of in &table.functions {
        slot_of(&mut out, &snake(&of.name), of);
    }
    writeln!(out, "}} PurlinPjrtApi;\n").unwrap();
    for of in &table.extensions {
        let name = type_name(&of.name) + "Extension";
        doc(&mut out, "", &format!("PJRT_{}_Extension, version {}: {}", of.name, of.version, of.text));
        writeln!(out, "typedef struct {name} {{").unwrap();
        writeln!(out, "  PurlinPjrtExtensionBase base; /**< What every extension begins with. */").unwrap();
        for function in &of.functions {
            slot_of(&mut out, &slot(&of.name, &function.name), function);
        }
        writeln!(out, "}} {name};\n").unwrap();
    }
    out.truncate(out.trim_end().len());
    out + "\n" + TAIL
}

/// As C writes it, with Purlin's prefix.
pub(crate) fn type_name(name: &str) -> String {
    format!("PurlinPjrt{}", camel(name))
}

fn section(out: &mut String, title: &str) {
    let rule = "-".repeat(112 - title.len());
    writeln!(out, "\n/* {title} {rule} */\n").unwrap();
}

fn structure(out: &mut String, table: &Table, of: &Struct) {
    let name = type_name(&of.name);
    for field in &of.fields {
        union(out, &name, field);
    }
    doc(out, "", &format!("PJRT_{}: {}{}", of.name, of.text, since(of.since)));
    writeln!(out, "struct {name} {{").unwrap();
    for field in &of.fields {
        match &field.signature {
            Some(signature) => member(out, &function(&field.name, signature), &sentence(field)),
            None if field.members.is_empty() => member(out, &variable(&field.c_type, &field.name), &sentence(field)),
            None => member(out, &format!("{name}Value {}", field.name), &sentence(field)),
        }
    }
    writeln!(out, "}};").unwrap();
    if of.is_sized {
        doc(out, "", &format!("What goes into struct_size of {name}."));
        writeln!(out, "enum {{ k{name}Size = {} }};", table.placed(of).struct_size()).unwrap();
    }
    writeln!(out).unwrap();
}

/// A union of its own, with a name that XLA's has not: tools for documentation lose the members of one without.
fn union(out: &mut String, owner: &str, field: &Field) {
    if field.members.is_empty() {
        return;
    }
    doc(out, "", &format!("What a {owner} holds."));
    writeln!(out, "typedef union {owner}Value {{").unwrap();
    for (name, c_type) in &field.members {
        member(out, &variable(c_type, name), "One of several.");
    }
    writeln!(out, "}} {owner}Value;\n").unwrap();
}

fn slot_of(out: &mut String, name: &str, of: &Function) {
    let returns = if of.returns_error { "PurlinPjrtError*" } else { "void" };
    let declaration = format!("{returns} (*{name})({}* args)", type_name(&of.arguments.name));
    member(out, &declaration, &format!("PJRT_{}: {}{}", of.name, of.text, since(of.since)));
}

fn sentence(field: &Field) -> String {
    let text = match (field.role, field.text.is_empty()) {
        (role, true) => role.words().to_owned() + ".",
        (Role::Out | Role::Gives | Role::Lends, false) => format!("Out. {}", field.text),
        (_, false) => field.text.clone(),
    };
    text + &since(field.since)
}

fn since(minor: u32) -> String {
    if minor == 0 { String::new() } else { format!(" Since 0.{minor}.") }
}

fn function(name: &str, of: &Signature) -> String {
    let parameters = of.parameters.iter().map(|(c_type, name)| variable(c_type, name)).collect::<Vec<_>>();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{} (*{name})({parameters})", variable(&of.returns, "").trim_end())
}

/// A declaration, with Purlin's prefix before PJRT's types.
fn variable(c_type: &str, name: &str) -> String {
    const OWN: [&str; 14] = [
        "const",
        "void",
        "char",
        "int",
        "unsigned",
        "bool",
        "float",
        "int32_t",
        "int64_t",
        "uint64_t",
        "size_t",
        "intptr_t",
        "uintptr_t",
        "*",
    ];
    let spaced = c_type.replace('*', " * ");
    let mut out = String::new();
    for token in spaced.split_whitespace() {
        if token != "*" && !out.is_empty() {
            out.push(' ');
        }
        out += &if OWN.contains(&token) { token.to_owned() } else { type_name(token) };
    }
    format!("{out} {name}")
}

/// A member that is a variable or a function.
fn member(out: &mut String, declaration: &str, text: &str) {
    commented(out, "  ", &format!("{declaration};"), text);
}

/// A line with its comment behind it where there is room, or before it.
fn commented(out: &mut String, indent: &str, code: &str, text: &str) {
    let line = format!("{indent}{code} /**< {text} */");
    if line.len() <= 120 {
        writeln!(out, "{line}").unwrap();
    } else {
        doc(out, indent, text);
        wrap(out, indent, &format!("{indent}    "), code, ", ");
    }
}

/// A comment for documentation.
fn doc(out: &mut String, indent: &str, text: &str) {
    wrap(out, indent, &format!("{indent} * "), &format!("/** {text} */"), " ");
}

/// Lines of 120 columns at most, which end where `gap` is, or before the parameters of a function.
pub(crate) fn wrap(out: &mut String, first: &str, others: &str, text: &str, gap: &str) {
    let (head, parameters) = text.split_at(text.find(")(").map_or(text.len(), |at| at + 2));
    let first_parameter = parameters.split_inclusive(gap).next().unwrap_or_default().trim_end();
    let apart = !parameters.is_empty() && first.len() + head.len() + first_parameter.len() > 120;
    let words = if apart { vec![head] } else { Vec::new() };
    let rest = if apart { parameters } else { text };
    let mut line = first.to_owned();
    for (index, word) in words.into_iter().chain(rest.split_inclusive(gap)).enumerate() {
        if index > 0 && line.len() + word.trim_end().len() > 120 || index == 1 && apart {
            writeln!(out, "{}", line.trim_end()).unwrap();
            others.clone_into(&mut line);
        }
        line += word;
    }
    writeln!(out, "{line}").unwrap();
}
