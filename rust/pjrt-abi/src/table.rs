//! The API as values, and the grammar of `pjrt.abi`, which `read.rs` reads.
//!
//! A line that begins in the first column begins an entry, a line with two blanks belongs to it, and one with four or
//! more goes on with the line before. `#` begins a comment. What follows `: ` is for people.
//!
//! | line | what it is |
//! |---|---|
//! | `enum NAME [as PREFIX]: TEXT` | an enumeration of 4 bytes; its members, `NAME[@SINCE]`, follow, from 0 |
//! | `handle NAME` | an object that its receiver sees only by address |
//! | `callback TYPE NAME(PARAMETERS): TEXT` | the type of a function |
//! | `struct NAME [since N]: TEXT` | begins with `struct_size` and `extension_start`; its other fields follow |
//! | `sized NAME [since N]: TEXT` | begins with `struct_size` |
//! | `plain NAME [since N]: TEXT` | has the fields that follow, no others |
//! | `extension NAME version N [since N]: TEXT` | the functions that follow are its, not the plugin's |
//! | `fn NAME [void] [sized] [since N]: TEXT` | a slot, and the fields of its arguments; returns an error, or nothing |
//! | `  ROLE TYPE NAME [[COUNT]] [by FIELD] [until FIELD] [since N]: TEXT` | a field; a role with `?` may be null |
//! | `  call TYPE NAME(PARAMETERS) [since N]: TEXT` | a field that is a function |
//! | `  union: NAME TYPE, ...` | a field that is one of several |

/// What a party does with a field, or what happens to what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value, or memory that is lent for the call.
    In,
    /// An object, lent for the call.
    Handle,
    /// An object that the call frees.
    Ends,
    /// An object or memory that the call takes over.
    Takes,
    /// A value that the call writes.
    Out,
    /// An object that is the caller's from then on.
    Gives,
    /// Memory or an object that stays with its owner.
    Lends,
    /// The caller's, read and written.
    InOut,
    /// A function.
    Call,
    /// What such a function is given.
    Arg,
    /// One of several.
    Union,
}

impl Role {
    pub(crate) const ALL: [(&'static str, Self); 10] = [
        ("in", Self::In),
        ("handle", Self::Handle),
        ("ends", Self::Ends),
        ("takes", Self::Takes),
        ("out", Self::Out),
        ("gives", Self::Gives),
        ("lends", Self::Lends),
        ("inout", Self::InOut),
        ("call", Self::Call),
        ("arg", Self::Arg),
    ];

    /// As the docs say it.
    pub fn words(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Handle => "in: an object, lent for the call",
            Self::Ends => "in: freed",
            Self::Takes => "in: taken over",
            Self::Out => "out",
            Self::Gives => "out: the caller's",
            Self::Lends => "out: lent",
            Self::InOut => "in and out",
            Self::Call => "a function",
            Self::Arg => "passed on",
            Self::Union => "one of several",
        }
    }
}

/// A type as C writes it, and where it can be a function, its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// As C writes it.
    pub returns: String,
    /// Type and name.
    pub parameters: Vec<(String, String)>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// What happens to it.
    pub role: Role,
    /// Whether it may be null.
    pub nullable: bool,
    /// As C writes it, without the prefix `PJRT_`; empty of functions and unions.
    pub c_type: String,
    /// As C has it.
    pub name: String,
    /// Of a function.
    pub signature: Option<Signature>,
    /// Of a union: name and type.
    pub members: Vec<(String, String)>,
    /// The field that says how many elements there are.
    pub count: Option<String>,
    /// The field whose object lends it.
    pub by: Option<String>,
    /// The event at which it is given back.
    pub until: Option<String>,
    /// The first minor version that has it; 0 where the struct's first had it.
    pub since: u32,
    /// For people.
    pub text: String,
}

/// A struct.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Without the prefix `PJRT_`.
    pub name: String,
    /// The first minor version that has it, or 0.
    pub since: u32,
    /// For people.
    pub text: String,
    /// In the order of memory.
    pub fields: Vec<Field>,
    /// Whether its first field is `struct_size`.
    pub is_sized: bool,
}

/// A function of a plugin or an extension.
#[derive(Clone, Debug)]
pub struct Function {
    /// Without the prefix `PJRT_`.
    pub name: String,
    /// Or nothing.
    pub returns_error: bool,
    /// The first minor version that has it, or 0.
    pub since: u32,
    /// For people.
    pub text: String,
    /// Its arguments.
    pub arguments: Struct,
}

/// An extension of the API.
#[derive(Clone, Debug)]
pub struct Extension {
    /// As the enumeration of extensions has it.
    pub name: String,
    /// Its own version.
    pub version: u32,
    /// The first minor version that has it, or 0.
    pub since: u32,
    /// For people.
    pub text: String,
    /// In the order of their slots.
    pub functions: Vec<Function>,
}

/// An enumeration.
#[derive(Clone, Debug)]
pub struct Enum {
    /// Without the prefix `PJRT_`.
    pub name: String,
    /// What its members' names begin with, without `PJRT_`.
    pub prefix: String,
    /// For people.
    pub text: String,
    /// From 0, with the first minor version that has each, or 0.
    pub members: Vec<(String, u32)>,
}

/// The type of a function that one side gives the other.
#[derive(Clone, Debug)]
pub struct Callback {
    /// Without the prefix `PJRT_`.
    pub name: String,
    /// What it takes and returns.
    pub signature: Signature,
    /// For people.
    pub text: String,
}

/// The whole API.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its enumerations.
    pub enums: Vec<Enum>,
    /// Its opaque objects.
    pub handles: Vec<String>,
    /// Its types of functions.
    pub callbacks: Vec<Callback>,
    /// Its structs, but for the arguments of functions.
    pub structs: Vec<Struct>,
    /// In the order of their slots.
    pub functions: Vec<Function>,
    /// What plugins may have besides.
    pub extensions: Vec<Extension>,
}

/// The text of the table.
pub const TEXT: &str = include_str!("../pjrt.abi");

impl Table {
    /// The table of this crate.
    ///
    /// # Panics
    /// If `pjrt.abi` is not as the head of this file says; a build fails then.
    pub fn of_this_crate() -> Self {
        super::read::table(TEXT).unwrap_or_else(|wrong| panic!("pjrt.abi: {wrong}"))
    }

    /// Every struct: those of the table, and the arguments of all functions.
    pub fn all_structs(&self) -> impl Iterator<Item = &Struct> {
        let extensions = self.extensions.iter().flat_map(|extension| &extension.functions);
        self.structs.iter().chain(self.functions.iter().chain(extensions).map(|function| &function.arguments))
    }
}
