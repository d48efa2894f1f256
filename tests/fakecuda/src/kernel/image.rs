//! Images of modules, as far as the driver looks at them before the interpreter does: what they are, and whether this
//! driver and this device may have them.

use purlin_fakecuda_options::Options;

use crate::code::Code;

/// The first bytes of a cubin, and of what bundles several.
const BINARIES: [&[u8]; 2] = [b"\x7FELF", &[0x50, 0xED, 0x55, 0xBA]];

/// The newest PTX of a driver: of 12.0 to 12.9, and of 13.0 and newer.
const PTX_OF_12: [(u32, u32); 10] = [(8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 5), (8, 6), (8, 7), (8, 8)];

/// NO_BINARY_FOR_GPU for what is no text.
pub(crate) fn must_be_text(first: &[u8]) -> Result<(), Code> {
    if BINARIES.iter().any(|magic| first.starts_with(magic)) { Err(Code::NO_BINARY_FOR_GPU) } else { Ok(()) }
}

/// UNSUPPORTED_PTX_VERSION for a text that is newer than the driver, NO_BINARY_FOR_GPU for one of a newer chip.
pub(crate) fn must_suit(options: &Options, version: Option<(u32, u32)>, target: &str) -> Result<(), Code> {
    if version.is_some_and(|version| version > newest_ptx(options.driver_version)) {
        return Err(Code::UNSUPPORTED_PTX_VERSION);
    }
    match chip(target) {
        Some((wanted, suffix)) => {
            let has = options.capability;
            let suits = match suffix {
                "a" => has == wanted,
                "f" => has.0 == wanted.0 && has.1 >= wanted.1,
                _ => has >= wanted,
            };
            if suits { Ok(()) } else { Err(Code::NO_BINARY_FOR_GPU) }
        }
        None => Ok(()),
    }
}

fn newest_ptx(driver: u32) -> (u32, u32) {
    let minor = (driver % 1000) / 10;
    match driver / 1000 {
        0..=11 => (7, 8),
        12 => PTX_OF_12[minor.min(9) as usize],
        major => (9 + (major - 13), minor),
    }
}

/// `sm_90a`: 9.0 and `a`.
pub(super) fn chip(target: &str) -> Option<((u32, u32), &str)> {
    let name = target.strip_prefix("sm_")?;
    let digits = name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len());
    let number: u32 = name[..digits].parse().ok()?;
    Some(((number / 10, number % 10), &name[digits..]))
}

/// The word behind a directive of the head: of `.version 8.2` that is `8.2`.
fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().map(str::trim_start).find(|line| line.starts_with(name))?;
    line[name.len()..].split([' ', '\t', ',', '/', ';']).find(|word| !word.is_empty())
}

/// `.version` and `.target` of a text, before anything else of it is understood.
pub(crate) fn head(text: &str) -> (Option<(u32, u32)>, &str) {
    let version = directive(text, ".version").and_then(|version| {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    (version, directive(text, ".target").unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_found_behind_comments() {
        assert_eq!(head("// hello\n.version 8.2\n  .target sm_75, debug\n"), (Some((8, 2)), "sm_75"));
        assert_eq!(head("no text"), (None, ""));
    }

    #[test]
    fn newer_texts_are_refused_by_older_drivers() {
        let of =
            |driver_version, version| must_suit(&Options { driver_version, ..Options::default() }, Some(version), "");
        assert_eq!([of(12_020, (8, 2)), of(13_000, (9, 0)), of(12_090, (8, 8))], [Ok(()); 3]);
        assert_eq!(
            [of(12_020, (8, 3)), of(12_090, (9, 0)), of(13_000, (9, 1))],
            [Err(Code::UNSUPPORTED_PTX_VERSION); 3]
        );
    }

    #[test]
    fn newer_chips_are_refused_by_older_devices() {
        let of = |capability, target| must_suit(&Options { capability, ..Options::default() }, None, target).is_ok();
        assert!(of((9, 0), "sm_75") && of((9, 0), "sm_90a") && of((12, 1), "sm_120f") && of((12, 0), "sm_120"));
        assert!(!of((7, 5), "sm_80") && !of((10, 0), "sm_90a") && !of((12, 0), "sm_121f") && !of((10, 0), "sm_90f"));
    }
}
