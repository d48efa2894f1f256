//! Reads a relocatable file: sections, functions and relocations that lie inside it.
//!
//! The file is untrusted. Each number is checked here, once: every [`Place`] lies in its section, every range of bytes
//! in the file, and every alignment is at most a page. A contradiction is a [`Fault`]; an unknown part is a reason.

use object::elf::{self, FileHeader64};
use object::endian::LittleEndian;
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};

use super::pages::PAGE_BYTES;
use crate::fault::{Fault, Reasons};

/// A file whose parts are checked.
#[derive(Debug)]
pub(crate) struct ObjectFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) relocations: Vec<Relocation<'a>>,
}

/// A section that is loaded.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: String,
    /// The content. If it is shorter than `size_bytes`, the rest is zeros, as after an unwind table.
    pub(crate) bytes: &'a [u8],
    pub(crate) size_bytes: usize,
    pub(crate) alignment: usize,
    pub(crate) is_code: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_unwind_table: bool,
}

/// A symbol that other files may refer to.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    /// At least 1, if the section does not end there.
    pub(crate) size_bytes: usize,
}

/// A byte of a section, or the end of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The index in `sections`.
    pub(crate) section: usize,
    pub(crate) offset: usize,
}

/// A value to write at a place.
#[derive(Debug)]
pub(crate) struct Relocation<'a> {
    pub(crate) kind: Kind,
    pub(crate) at: Place,
    pub(crate) target: Target<'a>,
    pub(crate) addend: i64,
}

/// The kind of value to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `R_X86_64_64`: the address of the target.
    Absolute64,
    /// `R_X86_64_PC64`: the distance from the place to the target; in unwind tables only.
    Relative64,
    /// `R_X86_64_PC32`: the distance in four bytes; in unwind tables only.
    Relative32,
}

/// The target of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A place in the same file.
    Place(Place),
    /// A symbol that this file does not define.
    Named(&'a str),
}

type Header = FileHeader64<LittleEndian>;
type Header64 = elf::SectionHeader64<LittleEndian>;

impl<'a> ObjectFile<'a> {
    /// Reads `bytes`. A part that is sound but unknown is added to `reasons`, and left out.
    pub(crate) fn read(name: &'a str, bytes: &'a [u8], reasons: &mut Reasons) -> Result<Self, Fault> {
        // The part of the file that is being read: an error has its offset.
        let damage = |offset: usize| move |what: String| Fault::damage(offset, format!("object '{name}': {what}"));
        let broken = |offset: usize| move |error: object::read::Error| damage(offset)(error.to_string());
        let header = Header::parse(bytes).map_err(broken(0))?;
        let endian = header.endian().map_err(broken(0))?;
        if header.e_machine(endian) != elf::EM_X86_64 || header.e_type(endian) != elf::ET_REL {
            let (machine, kind) = (header.e_machine(endian), header.e_type(endian));
            return Err(damage(0)(format!(
                "no relocatable file for x86-64, but of machine {machine:?} and type {kind:?}"
            )));
        }
        let headers = usize::try_from(header.e_shoff(endian)).map_or(0, |offset| offset.min(bytes.len()));
        let table = header.sections(endian, bytes).map_err(broken(headers))?;
        let symbols = table.symbols(endian, bytes, elf::SHT_SYMTAB).map_err(broken(headers))?;

        let mut file = Self { name, sections: Vec::new(), functions: Vec::new(), relocations: Vec::new() };
        // Indexed by the file's section number: the index in `sections`.
        let mut loaded: Vec<Option<usize>> = vec![None; table.len()];
        for (index, section) in table.enumerate() {
            let at = offset_in(bytes, section);
            let title = String::from_utf8_lossy(table.section_name(endian, section).map_err(broken(at))?).into_owned();
            let Some(read) = read_section(section, title, bytes, reasons).map_err(damage(at))? else { continue };
            loaded[index.0] = Some(file.sections.len());
            file.sections.push(read);
        }
        let place = |file: &Self, symbol: &elf::Sym64<LittleEndian>| -> Result<Option<Place>, String> {
            let number = usize::from(symbol.st_shndx(endian).0);
            let Some(section) = loaded.get(number).copied().flatten() else { return Ok(None) };
            let (offset, size_bytes) = (symbol.st_value(endian), file.sections[section].size_bytes);
            match usize::try_from(offset).ok().filter(|&offset| offset <= size_bytes) {
                Some(offset) => Ok(Some(Place { section, offset })),
                None => Err(format!("a symbol at {offset} of a section of {size_bytes} bytes")),
            }
        };
        for symbol in symbols.iter() {
            let at = offset_in(bytes, symbol);
            if symbol.st_shndx(endian) == elf::SHN_COMMON {
                reasons.add("a symbol without a section (common)");
            }
            if symbol.st_bind() != elf::STB_GLOBAL && symbol.st_bind() != elf::STB_WEAK {
                continue;
            }
            let title = symbol_name(symbols.symbol_name(endian, symbol).map_err(broken(at))?).map_err(damage(at))?;
            if let Some(place) = place(&file, symbol).map_err(damage(at))? {
                let left = file.sections[place.section].size_bytes - place.offset;
                let size_bytes = usize::try_from(symbol.st_size(endian)).ok().filter(|&size_bytes| size_bytes > 0);
                file.functions.push(Function { name: title, place, size_bytes: size_bytes.unwrap_or(1).min(left) });
            }
        }
        for section in table.iter() {
            if section.sh_type(endian) == elf::SHT_REL {
                reasons.add("relocations without addends (SHT_REL)");
            }
            let Some((entries, _)) = section.rela(endian, bytes).map_err(broken(offset_in(bytes, section)))? else {
                continue;
            };
            let Some(of) =
                usize::try_from(section.sh_info(endian)).ok().and_then(|of| loaded.get(of).copied().flatten())
            else {
                continue;
            };
            for entry in entries {
                let entry_at = offset_in(bytes, entry);
                let is_table = file.sections[of].is_unwind_table;
                let Some((kind, width)) = kind_of(entry.r_type(endian, false), is_table) else {
                    let title = relocation_name(entry.r_type(endian, false));
                    reasons.add(format!("relocation {title} in section {}", file.sections[of].name));
                    continue;
                };
                let (offset, there) = (entry.r_offset(endian), file.sections[of].bytes.len());
                let at =
                    usize::try_from(offset).ok().filter(|at| at.checked_add(width).is_some_and(|end| end <= there));
                let Some(offset) = at else {
                    return Err(damage(entry_at)(format!("a relocation at {offset} of a section of {there} bytes")));
                };
                let number = object::read::SymbolIndex(entry.r_sym(endian, false) as usize);
                let symbol = symbols.symbol(number).map_err(broken(entry_at))?;
                let target = match place(&file, symbol).map_err(damage(offset_in(bytes, symbol)))? {
                    Some(place) => Target::Place(place),
                    None if symbol.st_shndx(endian) == elf::SHN_UNDEF => {
                        let title = symbols.symbol_name(endian, symbol).map_err(broken(entry_at))?;
                        Target::Named(symbol_name(title).map_err(damage(entry_at))?)
                    }
                    None => {
                        reasons.add(format!("a relocation in {} to what is not loaded", file.sections[of].name));
                        continue;
                    }
                };
                let at = Place { section: of, offset };
                file.relocations.push(Relocation { kind, at, target, addend: entry.r_addend(endian) });
            }
        }
        Ok(file)
    }
}

/// The offset of a part in the bytes that it was read from.
fn offset_in<T>(bytes: &[u8], part: &T) -> usize {
    std::ptr::from_ref(part).addr() - bytes.as_ptr().addr()
}

/// Reads a section; `None` if it is not loaded.
fn read_section<'a>(
    section: &Header64,
    name: String,
    bytes: &'a [u8],
    reasons: &mut Reasons,
) -> Result<Option<Section<'a>>, String> {
    let endian = LittleEndian;
    let flags = section.sh_flags(endian).0;
    if flags & elf::SHF_ALLOC.0 == 0 {
        return Ok(None);
    }
    let kind = section.sh_type(endian);
    let is_known = [elf::SHT_PROGBITS, elf::SHT_NOBITS, elf::SHT_X86_64_UNWIND].contains(&kind);
    let (is_code, is_writable) = (flags & elf::SHF_EXECINSTR.0 != 0, flags & elf::SHF_WRITE.0 != 0);
    if !is_known || flags & (elf::SHF_TLS.0 | elf::SHF_COMPRESSED.0) != 0 || is_code && is_writable {
        reasons.add(format!("section {name} (type {:#x}, flags {flags:#x})", kind.0));
        return Ok(None);
    }
    let size_bytes = usize::try_from(section.sh_size(endian)).map_err(|_| format!("section {name} is too long"))?;
    let alignment = usize::try_from(section.sh_addralign(endian)).unwrap_or(usize::MAX).max(1);
    if !alignment.is_power_of_two() || alignment > PAGE_BYTES {
        return Err(format!("section {name} is to be aligned to {alignment}"));
    }
    let data = section.data(endian, bytes).map_err(|error| format!("section {name}: {error}"))?;
    let is_unwind_table = name == ".eh_frame";
    // Four zero bytes end a table. A static linker would add them.
    let size_bytes = if is_unwind_table { size_bytes.saturating_add(4) } else { size_bytes };
    Ok(Some(Section { name, bytes: data, size_bytes, alignment, is_code, is_writable, is_unwind_table }))
}

fn symbol_name(name: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(name).map_err(|_| "the name of a symbol is not UTF-8".to_owned())
}

fn kind_of(kind: elf::RelocationType, is_table: bool) -> Option<(Kind, usize)> {
    match kind {
        elf::R_X86_64_64 => Some((Kind::Absolute64, 8)),
        elf::R_X86_64_PC64 if is_table => Some((Kind::Relative64, 8)),
        elf::R_X86_64_PC32 if is_table => Some((Kind::Relative32, 4)),
        _ => None,
    }
}

/// The psABI's name, for the relocations that compilers write.
fn relocation_name(kind: elf::RelocationType) -> String {
    let name = match kind {
        elf::R_X86_64_PC32 => "R_X86_64_PC32",
        elf::R_X86_64_PLT32 => "R_X86_64_PLT32",
        elf::R_X86_64_GOTPCREL => "R_X86_64_GOTPCREL",
        elf::R_X86_64_32 => "R_X86_64_32",
        elf::R_X86_64_32S => "R_X86_64_32S",
        elf::R_X86_64_PC64 => "R_X86_64_PC64",
        elf::R_X86_64_GOTOFF64 => "R_X86_64_GOTOFF64",
        elf::R_X86_64_GOT64 => "R_X86_64_GOT64",
        elf::R_X86_64_GOTPC64 => "R_X86_64_GOTPC64",
        elf::R_X86_64_GOTPCRELX => "R_X86_64_GOTPCRELX",
        elf::R_X86_64_REX_GOTPCRELX => "R_X86_64_REX_GOTPCRELX",
        elf::RelocationType(number) => return format!("of type {number}"),
    };
    name.to_owned()
}
