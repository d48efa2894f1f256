//! Reads `pjrt.abi`; `table.rs` has the grammar.

use super::table::{Callback, Enum, Extension, Field, Function, Role, Signature, Struct, Table};

/// The table that a text describes.
///
/// # Errors
/// The first line that is not understood: its number, what is wrong, and the line.
pub(crate) fn table(text: &str) -> Result<Table, String> {
    let mut reader = Reader::default();
    for (number, line) in joined(text) {
        let read = match line.strip_prefix("  ") {
            Some(line) => reader.belonging(line),
            None => reader.entry(&line),
        };
        read.map_err(|wrong| format!("line {number}: {wrong}: {line}"))?;
    }
    Ok(reader.table)
}

#[derive(Default)]
struct Reader {
    table: Table,
    /// The kind of the last entry.
    kind: String,
}

impl Reader {
    /// A line that begins an entry.
    fn entry(&mut self, line: &str) -> Result<(), String> {
        let (line, text) = described(line);
        let (kind, rest) = line.split_once(' ').ok_or("no name")?;
        let (rest, since) = number_after(rest, " since ")?;
        let table = &mut self.table;
        match kind {
            "enum" => {
                let (name, prefix) = word_after(rest, " as ");
                let prefix = prefix.unwrap_or_else(|| name.to_owned());
                table.enums.push(Enum { name: name.to_owned(), prefix, text, members: Vec::new() });
            }
            "handle" => table.handles.push(rest.to_owned()),
            "callback" => {
                let (name, signature) = function(rest)?;
                table.callbacks.push(Callback { name, signature, text });
            }
            "struct" | "sized" | "plain" => table.structs.push(begun(kind, rest, since, text)),
            "extension" => {
                let (name, version) = number_after(rest, " version ")?;
                let name = name.to_owned();
                table.extensions.push(Extension { name, version, since, text, functions: Vec::new() });
            }
            "fn" => {
                let (rest, is_sized) = flag(rest, " sized");
                let (name, is_void) = flag(rest, " void");
                let kind = if is_sized { "sized" } else { "struct" };
                let since = since.max(table.extensions.last().map_or(0, |extension| extension.since));
                let arguments = begun(kind, &format!("{name}_Args"), since, format!("The arguments of `PJRT_{name}`."));
                let function = Function { name: name.to_owned(), returns_error: !is_void, since, text, arguments };
                functions(table).push(function);
            }
            _ => return Err(format!("no entry is a {kind:?}")),
        }
        kind.clone_into(&mut self.kind);
        Ok(())
    }

    /// A line that belongs to the entry before.
    fn belonging(&mut self, line: &str) -> Result<(), String> {
        let table = &mut self.table;
        let fields = match self.kind.as_str() {
            "enum" => {
                let members = &mut table.enums.last_mut().ok_or("no enum")?.members;
                for member in line.split_whitespace() {
                    let (name, since) = number_after(member, "@")?;
                    members.push((name.to_owned(), since));
                }
                return Ok(());
            }
            "struct" | "sized" | "plain" => &mut table.structs.last_mut().ok_or("no struct")?.fields,
            "fn" => &mut functions(table).last_mut().ok_or("no function")?.arguments.fields,
            other => return Err(format!("nothing belongs to a {other:?}")),
        };
        fields.push(field(line)?);
        Ok(())
    }
}

/// Where the next function goes.
fn functions(table: &mut Table) -> &mut Vec<Function> {
    match table.extensions.last_mut() {
        Some(extension) => &mut extension.functions,
        None => &mut table.functions,
    }
}

/// The lines that say something, with the number of the first of each, continuations joined.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match lines.last_mut() {
            Some((_, last)) if line.starts_with("    ") => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => lines.push((index + 1, line.to_owned())),
        }
    }
    lines
}

/// The line before `: `, and what follows, for people.
fn described(line: &str) -> (&str, String) {
    line.split_once(": ").map_or((line, String::new()), |(line, text)| (line, text.to_owned()))
}

/// What stands before `key`, and the number behind it, or 0.
fn number_after<'a>(line: &'a str, key: &str) -> Result<(&'a str, u32), String> {
    let Some((line, number)) = line.split_once(key) else { return Ok((line, 0)) };
    let number = number.parse().map_err(|_| format!("no number follows{key}: {number:?}"))?;
    Ok((line, number))
}

/// The line without `key` at its end, and whether it was there.
fn flag<'a>(line: &'a str, key: &str) -> (&'a str, bool) {
    line.strip_suffix(key).map_or((line, false), |line| (line, true))
}

/// A struct with the fields that its kind has.
fn begun(kind: &str, name: &str, since: u32, text: String) -> Struct {
    let mut fields = Vec::new();
    if kind != "plain" {
        fields.push(value("size_t", "struct_size", "Bytes of this struct that the caller knows."));
    }
    if kind == "struct" {
        let mut extensions = value("Extension_Base*", "extension_start", "Extensions of this call.");
        extensions.nullable = true;
        fields.push(extensions);
    }
    Struct { name: name.to_owned(), since, text, fields, is_sized: kind != "plain" }
}

fn value(c_type: &str, name: &str, text: &str) -> Field {
    Field {
        role: Role::In,
        nullable: false,
        c_type: c_type.to_owned(),
        name: name.to_owned(),
        signature: None,
        members: Vec::new(),
        count: None,
        by: None,
        until: None,
        since: 0,
        text: text.to_owned(),
    }
}

fn field(line: &str) -> Result<Field, String> {
    if let Some(members) = line.strip_prefix("union: ") {
        let members = members.split(", ").map(|member| {
            let (name, c_type) = member.split_once(' ').ok_or("a member has no type")?;
            Ok((name.to_owned(), c_type.to_owned()))
        });
        let members = members.collect::<Result<_, String>>()?;
        return Ok(Field { role: Role::Union, members, ..value("", "value", "One of several; the type says which.") });
    }
    let (line, text) = described(line);
    let (line, since) = number_after(line, " since ")?;
    let (role, rest) = line.split_once(' ').ok_or("no type")?;
    let (role, nullable) = flag(role, "?");
    let role = Role::ALL.into_iter().find(|(name, _)| *name == role).ok_or_else(|| format!("no role is {role:?}"))?.1;
    if role == Role::Call {
        let (name, signature) = function(rest)?;
        return Ok(Field { role, nullable, signature: Some(signature), since, ..value("", &name, &text) });
    }
    let (rest, until) = word_after(rest, " until ");
    let (rest, by) = word_after(rest, " by ");
    let (rest, count) = word_after(rest, " [");
    let (c_type, name) = rest.rsplit_once(' ').ok_or("no name")?;
    let count = count.map(|count| count.trim_end_matches(']').to_owned());
    Ok(Field { role, nullable, count, by, until, since, ..value(c_type, name, &text) })
}

fn word_after<'a>(line: &'a str, key: &str) -> (&'a str, Option<String>) {
    line.split_once(key).map_or((line, None), |(line, word)| (line, Some(word.to_owned())))
}

/// `TYPE NAME(TYPE NAME, ...)`.
fn function(line: &str) -> Result<(String, Signature), String> {
    let (head, parameters) = line.strip_suffix(')').and_then(|line| line.split_once('(')).ok_or("no parameters")?;
    let (returns, name) = head.rsplit_once(' ').ok_or("no name")?;
    let parameters = parameters.split(", ").filter(|parameter| !parameter.is_empty()).map(|parameter| {
        let (c_type, name) = parameter.rsplit_once(' ').ok_or("a parameter has no name")?;
        Ok((c_type.to_owned(), name.to_owned()))
    });
    let parameters = parameters.collect::<Result<_, String>>()?;
    Ok((name.to_owned(), Signature { returns: returns.to_owned(), parameters }))
}
