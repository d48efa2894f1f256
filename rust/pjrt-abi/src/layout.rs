//! Where C puts the fields, on the platforms that Purlin runs on: 64 bits, `int` of four bytes.

use super::table::{Field, Function, Struct, Table};

/// Size and alignment in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `sizeof`.
    pub size: usize,
    /// `alignof`.
    pub align: usize,
}

const WORD: Layout = Layout { size: 8, align: 8 };

/// A struct, laid out.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Of each field.
    pub offsets: Vec<usize>,
    /// The end of each field.
    pub ends: Vec<usize>,
    /// As `sizeof` has it.
    pub layout: Layout,
}

impl Placed {
    /// What callers that know all of it write into `struct_size`: the end of the last field, without padding.
    pub fn struct_size(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl Table {
    /// The layout of a struct.
    ///
    /// # Panics
    /// If the table names a type that it does not have.
    pub fn placed(&self, of: &Struct) -> Placed {
        let (mut end, mut align) = (0_usize, 1_usize);
        let (mut offsets, mut ends) = (Vec::new(), Vec::new());
        for field in &of.fields {
            let layout = self.layout_of(field);
            let offset = end.next_multiple_of(layout.align);
            end = offset + layout.size;
            align = align.max(layout.align);
            offsets.push(offset);
            ends.push(end);
        }
        Placed { offsets, ends, layout: Layout { size: end.next_multiple_of(align), align } }
    }

    /// The least `struct_size` that a caller of a minor version writes: the end of what the version knows.
    pub fn struct_size_at(&self, of: &Struct, minor: u32) -> usize {
        let ends = self.placed(of).ends;
        of.fields.iter().zip(ends).filter(|(field, _)| field.since <= minor).map(|(_, end)| end).max().unwrap_or(0)
    }

    fn layout_of(&self, field: &Field) -> Layout {
        if field.signature.is_some() {
            return WORD;
        }
        if field.members.is_empty() {
            return self.layout_of_type(&field.c_type);
        }
        let members = field.members.iter().map(|(_, c_type)| self.layout_of_type(c_type));
        let most = members.fold(Layout { size: 0, align: 1 }, |most, one| Layout {
            size: most.size.max(one.size),
            align: most.align.max(one.align),
        });
        Layout { size: most.size.next_multiple_of(most.align), ..most }
    }

    fn layout_of_type(&self, c_type: &str) -> Layout {
        let is_callback = |name: &str| self.callbacks.iter().any(|callback| callback.name == name);
        match c_type {
            "bool" => Layout { size: 1, align: 1 },
            "int" | "int32_t" | "unsigned" | "float" => Layout { size: 4, align: 4 },
            "int64_t" | "uint64_t" | "size_t" | "intptr_t" | "uintptr_t" => WORD,
            pointer if pointer.ends_with('*') || is_callback(pointer) => WORD,
            name if self.enums.iter().any(|of| of.name == name) => Layout { size: 4, align: 4 },
            name => {
                let of = self.all_structs().find(|of| of.name == name);
                self.placed(of.unwrap_or_else(|| panic!("the table has no type {name:?}"))).layout
            }
        }
    }

    /// The slot of a function of the plugin: its offset in the table of functions.
    pub fn offset_of_slot(index: usize) -> usize {
        40 + 8 * index
    }

    /// Every function, with the extension that has it.
    pub fn all_functions(&self) -> impl Iterator<Item = (Option<&str>, &Function)> {
        let extensions = self.extensions.iter();
        let theirs =
            extensions.flat_map(|of| of.functions.iter().map(move |function| (Some(of.name.as_str()), function)));
        self.functions.iter().map(|function| (None, function)).chain(theirs)
    }
}
