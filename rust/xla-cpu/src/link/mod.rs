//! An in-process linker for the object files of XLA:CPU's compiler: relocatable ELF64 for x86-64, large code model.
//!
//! The steps, in this order. Steps 1 to 3 are pure:
//!
//! 1. `object.rs` reads each file into sections, symbols and relocations, and checks that they lie inside the file. An
//!    unknown part (a kind of relocation, a section that runs code by itself) is a reason to refuse.
//! 2. `layout.rs` assigns each section an offset in one range of addresses: code, then read-only data, then writable
//!    data.
//! 3. `symbols.rs` has a closed list of the functions that code may call. No name is looked up in the process.
//! 4. `pages.rs` maps the range between guard pages. The sections are copied and relocated while all of it is writable.
//!    Then code becomes executable and read-only. No page is ever writable and executable at once.
//! 5. `unwind.rs` registers the unwind tables, and `perf_map.rs` lists the functions for a profiler, if the caller
//!    wants that.
//!
//! [`Code`] owns the pages, and kernels keep the `Code` alive. So the memory is unmapped when the last of them is
//! dropped. Linking runs none of the code.

mod layout;
mod object;
mod pages;
pub(crate) mod perf_map;
mod symbols;
#[cfg(test)]
pub(crate) mod tests;
mod unwind;

use std::collections::HashMap;

use purlin_base::StatusOr;

use self::layout::Layout;
pub(crate) use self::object::ObjectFile;
use self::object::{Function, Kind, Target};
use self::pages::Pages;
#[cfg(test)]
pub(crate) use self::pages::RESERVED;
use self::unwind::Registered;
use crate::fault::Reasons;

/// Files that can be linked: all their symbols and relocations are known.
#[derive(Debug)]
pub(crate) struct Linkable<'a> {
    files: Vec<ObjectFile<'a>>,
    layout: Layout,
    /// The offset of each function in the layout.
    functions: HashMap<&'a str, usize>,
}

impl<'a> Linkable<'a> {
    /// Resolves the symbols of the files, among each other and in the closed list. Maps nothing.
    pub(crate) fn new(files: Vec<ObjectFile<'a>>, reasons: &mut Reasons) -> Option<Self> {
        let layout = reasons.take(Layout::new(&files))?;
        let mut functions = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            for Function { name, place, .. } in &file.functions {
                if functions.insert(*name, layout.offset_of(number, *place)).is_some() {
                    reasons.add(format!("symbol '{name}' is defined twice"));
                }
            }
        }
        let mut unknown: Vec<&str> = files
            .iter()
            .flat_map(|file| &file.relocations)
            .filter_map(|relocation| {
                let Target::Named(name) = relocation.target else { return None };
                (!functions.contains_key(name) && symbols::address_of(name).is_none()).then_some(name)
            })
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        for name in unknown {
            reasons.add(format!("symbol '{name}' is not among those that code may call"));
        }
        let linkable = Self { files, layout, functions };
        for (number, file) in linkable.files.iter().enumerate() {
            for relocation in file.relocations.iter().filter(|relocation| relocation.kind == Kind::Relative32) {
                let distance = linkable.offset_of(number, relocation.target).and_then(|target| {
                    let at = linkable.layout.offset_of(number, relocation.at);
                    i32::try_from((target as i64 - at as i64).saturating_add(relocation.addend)).ok()
                });
                if distance.is_none() {
                    let section = &file.sections[relocation.at.section].name;
                    reasons.add(format!("relocation R_X86_64_PC32 in section {section} to what may be too far away"));
                }
            }
        }
        Some(linkable)
    }

    /// The offset of a target in file `number`. `None`: it is a function of the closed list.
    fn offset_of(&self, number: usize, target: Target<'_>) -> Option<usize> {
        match target {
            Target::Place(place) => Some(self.layout.offset_of(number, place)),
            Target::Named(name) => self.functions.get(name).copied(),
        }
    }

    /// Whether the files define a function of that name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Maps the code, ready to be called.
    ///
    /// # Errors
    /// `ResourceExhausted`: the system has no memory for the pages. `PermissionDenied`: the system forbids executable
    /// pages. All that depends on the files was checked by `new()`.
    pub(crate) fn load(&self, unwind_tables: bool) -> StatusOr<Code> {
        let mut pages = Pages::reserve(&self.layout)?;
        for (number, file) in self.files.iter().enumerate() {
            for (index, section) in file.sections.iter().enumerate() {
                pages.write(self.layout.section(number, index), section.bytes);
            }
        }
        let base = pages.address();
        for (number, file) in self.files.iter().enumerate() {
            for relocation in &file.relocations {
                let at = self.layout.offset_of(number, relocation.at);
                let target = match (self.offset_of(number, relocation.target), relocation.target) {
                    (Some(offset), _) => base + offset,
                    (None, Target::Named(name)) => symbols::address_of(name).expect("new() has looked it up"),
                    (None, Target::Place(_)) => unreachable!("a place has an offset"),
                };
                let value = (target as u64).wrapping_add_signed(relocation.addend);
                let distance = value.wrapping_sub((base + at) as u64);
                match relocation.kind {
                    Kind::Absolute64 => pages.write(at, &value.to_le_bytes()),
                    Kind::Relative64 => pages.write(at, &distance.to_le_bytes()),
                    // new() has checked that the distance fits.
                    Kind::Relative32 => pages.write(at, &(distance as u32).to_le_bytes()),
                }
            }
        }
        pages.protect(&self.layout)?;
        let functions = self.functions.iter().map(|(name, offset)| ((*name).into(), base + offset)).collect();
        let tables = self.unwind_tables(base, unwind_tables);
        Ok(Code { functions, _tables: tables, _pages: pages })
    }

    /// The functions of the code, by address, as `perf_map.rs` describes them.
    pub(crate) fn perf_map(&self, code: &Code) -> String {
        let mut entries: Vec<perf_map::Entry<'_>> = self
            .files
            .iter()
            .flat_map(|file| file.functions.iter().map(move |function| (file, function)))
            .filter(|(file, function)| file.sections[function.place.section].is_code && function.size_bytes > 0)
            .filter_map(|(_, Function { name, size_bytes, .. })| {
                Some(perf_map::Entry { address: code.function(name)?, size_bytes: *size_bytes, name })
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.address);
        perf_map::text(&entries)
    }

    fn unwind_tables(&self, base: usize, wanted: bool) -> Vec<Registered> {
        if !wanted {
            return Vec::new();
        }
        let sections = self.files.iter().enumerate().flat_map(|(number, file)| {
            let tables = file.sections.iter().enumerate().filter(|(_, section)| section.is_unwind_table);
            tables.map(move |(index, section)| (base + self.layout.section(number, index), section.bytes))
        });
        sections.filter_map(|(address, bytes)| Registered::new(address, bytes)).collect()
    }
}

/// Linked code, mapped as long as this lives.
#[derive(Debug)]
pub(crate) struct Code {
    functions: HashMap<Box<str>, usize>,
    // Fields drop in this order: the tables are deregistered before the pages are unmapped.
    _tables: Vec<Registered>,
    _pages: Pages,
}

impl Code {
    /// The address of a function, which can be called as long as this lives.
    pub(crate) fn function(&self, name: &str) -> Option<usize> {
        self.functions.get(name).copied()
    }
}
