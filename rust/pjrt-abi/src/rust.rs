//! The table as Rust: what `build.rs` writes and `lib.rs` includes.

use std::fmt::Write;

use super::names::{camel, slot, snake};
use super::table::{Extension, Field, Signature, Struct, Table};

/// All declarations, and the assertions that the compiler lays them out as the table does.
pub(crate) fn declarations(table: &Table) -> String {
    let mut out = String::new();
    for of in &table.enums {
        let name = camel(&of.name);
        doc(&mut out, "", &format!("`PJRT_{}`: {}", of.name, of.text));
        writeln!(out, "pub type {name} = c_int;\n/// Values of [`{name}`].\npub mod {} {{", snake(&of.name)).unwrap();
        for (value, (member, _)) in of.members.iter().enumerate() {
            writeln!(out, "    /// `PJRT_{}_{member}`.", of.prefix).unwrap();
            writeln!(out, "    pub const {}: super::{name} = {value};", constant(member)).unwrap();
        }
        writeln!(out, "}}").unwrap();
    }
    for name in &table.handles {
        doc(&mut out, "", &format!("`PJRT_{name}`, which only its owner can look into."));
        writeln!(out, "#[repr(C)]\n#[derive(Debug)]\npub struct {} {{ _opaque: [u8; 0] }}", camel(name)).unwrap();
    }
    for of in &table.callbacks {
        doc(&mut out, "", &format!("`PJRT_{}`: {}", of.name, of.text));
        writeln!(out, "pub type {} = {};", camel(&of.name), function_type(&of.signature)).unwrap();
    }
    for of in table.all_structs() {
        structure(&mut out, table, of);
    }
    functions(&mut out, table);
    for of in &table.extensions {
        extension(&mut out, of);
    }
    for (slot, of) in table.functions.iter().enumerate().filter(|(_, of)| of.returns_error) {
        let arguments = camel(&of.arguments.name);
        named(&mut out, of);
        writeln!(out, "// SAFETY: the function at this place takes these arguments.").unwrap();
        writeln!(out, "unsafe impl Slot for {arguments} {{\n    const SLOT: usize = {slot};\n}}").unwrap();
    }
    for of in table.extensions.iter().flat_map(|extension| &extension.functions).filter(|of| of.returns_error) {
        named(&mut out, of);
    }
    out
}

fn structure(out: &mut String, table: &Table, of: &Struct) {
    let name = camel(&of.name);
    for field in &of.fields {
        union(out, &name, field);
    }
    doc(out, "", &format!("`PJRT_{}`: {}", of.name, of.text));
    writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {name} {{").unwrap();
    for field in &of.fields {
        doc(out, "    ", &sentence(field));
        writeln!(out, "    pub {}: {},", identifier(&field.name), field_type(&name, field)).unwrap();
    }
    writeln!(out, "}}").unwrap();
    let placed = table.placed(of);
    if of.is_sized {
        let (now, then) = (placed.struct_size(), table.struct_size_at(of, of.since));
        writeln!(out, "// SAFETY: it begins with `struct_size`; numbers, pointers and functions may all be zero.")
            .unwrap();
        writeln!(out, "unsafe impl Versioned for {name} {{").unwrap();
        writeln!(out, "    const NAME: &'static str = \"PJRT_{}\";", of.name).unwrap();
        writeln!(out, "    const STRUCT_SIZE: usize = {now};\n    const FIRST_SIZE: usize = {then};\n}}").unwrap();
    }
    if of.name.ends_with("_FunctionTable") {
        table_of_functions(out, &name);
    }
    writeln!(out, "const _: () = {{").unwrap();
    writeln!(out, "    assert!(size_of::<{name}>() == {});", placed.layout.size).unwrap();
    for (field, offset) in of.fields.iter().zip(&placed.offsets) {
        let field = identifier(&field.name);
        writeln!(out, "    assert!(std::mem::offset_of!({name}, {field}) == {offset});").unwrap();
    }
    writeln!(out, "}};").unwrap();
}

fn union(out: &mut String, owner: &str, field: &Field) {
    if field.members.is_empty() {
        return;
    }
    writeln!(out, "/// What a [`{owner}`] holds.\n#[repr(C)]\n#[derive(Clone, Copy)]\npub union {owner}Value {{")
        .unwrap();
    for (name, c_type) in &field.members {
        writeln!(out, "    /// One of several.\n    pub {name}: {},", rust_type(c_type)).unwrap();
    }
    writeln!(out, "}}\nimpl std::fmt::Debug for {owner}Value {{").unwrap();
    writeln!(out, "    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{").unwrap();
    writeln!(out, "        formatter.write_str(\"{owner}Value\")\n    }}\n}}").unwrap();
}

/// The table of the plugin's functions.
fn functions(out: &mut String, table: &Table) {
    writeln!(out, "/// `PJRT_Api`: the functions of a plugin.").unwrap();
    writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct Api {{").unwrap();
    writeln!(out, "    /// Bytes of this table.\n    pub struct_size: usize,").unwrap();
    writeln!(out, "    /// The first of a chain of extensions.\n    pub extension_start: *mut ExtensionBase,").unwrap();
    writeln!(out, "    /// What the plugin was built with.\n    pub version: ApiVersion,").unwrap();
    for of in &table.functions {
        slot_of(out, &snake(&of.name), of);
    }
    writeln!(out, "}}").unwrap();
    table_of_functions(out, "Api");
    writeln!(out, "/// How many functions [`Api`] has.\npub const SLOTS: usize = {};", table.functions.len()).unwrap();
    writeln!(out, "/// The names of the functions, in the order of their slots.\npub const NAMES: [&str; SLOTS] = [")
        .unwrap();
    for of in &table.functions {
        writeln!(out, "    \"PJRT_{}\",", of.name).unwrap();
    }
    writeln!(out, "];\nconst _: () = {{").unwrap();
    writeln!(out, "    assert!(size_of::<Api>() == {});", Table::offset_of_slot(table.functions.len())).unwrap();
    for (index, of) in table.functions.iter().enumerate() {
        let (name, offset) = (snake(&of.name), Table::offset_of_slot(index));
        writeln!(out, "    assert!(std::mem::offset_of!(Api, {name}) == {offset});").unwrap();
    }
    writeln!(out, "}};").unwrap();
}

fn extension(out: &mut String, of: &Extension) {
    let name = camel(&of.name) + "Extension";
    doc(out, "", &format!("`PJRT_{}_Extension`, version {}: {}", of.name, of.version, of.text));
    writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {name} {{").unwrap();
    writeln!(out, "    /// What every extension begins with.\n    pub base: ExtensionBase,").unwrap();
    for function in &of.functions {
        slot_of(out, &slot(&of.name, &function.name), function);
    }
    writeln!(out, "}}").unwrap();
    table_of_functions(out, &name);
}

/// What takes a function's arguments.
fn named(out: &mut String, of: &super::table::Function) {
    let (arguments, name) = (camel(&of.arguments.name), &of.name);
    writeln!(out, "impl Function for {arguments} {{\n    const FUNCTION: &'static str = \"PJRT_{name}\";\n}}").unwrap();
}

fn slot_of(out: &mut String, name: &str, of: &super::table::Function) {
    doc(out, "    ", &format!("`PJRT_{}`: {}", of.name, of.text));
    let returns = if of.returns_error { " -> *mut Error" } else { "" };
    let arguments = camel(&of.arguments.name);
    writeln!(out, "    pub {name}: Option<unsafe extern \"C\" fn(args: *mut {arguments}){returns}>,").unwrap();
}

fn table_of_functions(out: &mut String, name: &str) {
    writeln!(out, "// SAFETY: such tables are never written, and their functions may be called from every thread.")
        .unwrap();
    writeln!(out, "unsafe impl Sync for {name} {{}}").unwrap();
    writeln!(out, "// SAFETY: its first field says how large it is.\nunsafe impl Table for {name} {{}}").unwrap();
}

/// What the docs say of a field.
fn sentence(field: &Field) -> String {
    let mut text = if field.text.is_empty() { field.role.words().to_owned() + "." } else { field.text.clone() };
    if field.since > 0 {
        write!(text, " Since 0.{}.", field.since).unwrap();
    }
    text
}

fn doc(out: &mut String, indent: &str, text: &str) {
    writeln!(out, "{indent}/// {}", text.replace('[', "\\[")).unwrap();
}

fn identifier(name: &str) -> String {
    if name == "type" { "r#type".to_owned() } else { name.to_owned() }
}

fn field_type(owner: &str, field: &Field) -> String {
    match &field.signature {
        Some(signature) => function_type(signature),
        None if field.members.is_empty() => rust_type(&field.c_type),
        None => format!("{owner}Value"),
    }
}

/// A function that may be missing.
fn function_type(of: &Signature) -> String {
    let parameters = of.parameters.iter().map(|(c_type, name)| format!("{}: {}", identifier(name), rust_type(c_type)));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let returns = if of.returns == "void" { String::new() } else { format!(" -> {}", rust_type(&of.returns)) };
    format!("Option<unsafe extern \"C\" fn({parameters}){returns}>")
}

/// A type of C in Rust. `bool` is a byte, because other sides may write any.
fn rust_type(c_type: &str) -> String {
    let tokens = c_type.replace('*', " * ");
    let mut tokens = tokens.split_whitespace().peekable();
    let mut is_const = tokens.next_if_eq(&"const").is_some();
    let mut rust = match tokens.next().unwrap_or_default() {
        "void" => "c_void".to_owned(),
        "char" => "c_char".to_owned(),
        "int" => "c_int".to_owned(),
        "unsigned" => "c_uint".to_owned(),
        "bool" => "u8".to_owned(),
        "float" => "f32".to_owned(),
        "int32_t" => "i32".to_owned(),
        "int64_t" => "i64".to_owned(),
        "uint64_t" => "u64".to_owned(),
        "size_t" | "uintptr_t" => "usize".to_owned(),
        "intptr_t" => "isize".to_owned(),
        name => camel(name),
    };
    for token in tokens {
        match token {
            "*" => {
                rust = format!("*{} {rust}", if is_const { "const" } else { "mut" });
                is_const = false;
            }
            _ => is_const = true,
        }
    }
    rust
}

/// The name of an enumeration's member: `kInt64List` is `INT64_LIST`.
fn constant(member: &str) -> String {
    if !member.contains(char::is_lowercase) {
        return member.to_owned();
    }
    let own = member.strip_prefix('k').filter(|own| own.starts_with(char::is_uppercase));
    snake(own.unwrap_or(member)).to_uppercase()
}
