//! Where variables are, one after the other.

use crate::types::Type;
use crate::{Refusal, limits};

use super::Text;

/// A part of memory that is filled from its beginning.
#[derive(Default, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) size_bytes: u64,
    pub(crate) align: u64,
}

impl Layout {
    /// The offset of one more; `None` beyond `most` bytes. `align` is a power of two.
    pub(crate) fn add(&mut self, size_bytes: u64, align: u64, most: u64) -> Option<u64> {
        let offset = self.size_bytes.checked_next_multiple_of(align)?;
        self.size_bytes = offset.checked_add(size_bytes).filter(|&end| end <= most)?;
        self.align = self.align.max(align);
        Some(offset)
    }
}

/// What was declared: `.align 8 .b8 name[136]`.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a> {
    pub(crate) name: &'a str,
    pub(crate) ty: Type,
    pub(crate) align: u64,
    /// Elements; `None`: `name[]`.
    pub(crate) count: Option<u64>,
}

impl Declared<'_> {
    /// In bytes; `None`: `name[]`, or more than there are numbers.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        self.count?.checked_mul(self.ty.size_bytes() as u64)
    }
}

impl<'a> Text<'a> {
    /// A variable's attributes, type, name and dimensions; of a list, the first.
    pub(crate) fn declared(&mut self) -> Result<Declared<'a>, Refusal> {
        let (mut ty, mut align, mut per_element) = (None, None, 1);
        loop {
            match self.word("a type or a name")? {
                ".align" => {
                    let number = self.natural("an alignment")?;
                    if !number.is_power_of_two() || number > limits::ALIGNMENT {
                        return Err(self.refuse(format!("an alignment of {number} is not allowed")));
                    }
                    align = Some(number);
                }
                ".v2" => per_element = 2,
                ".v4" => per_element = 4,
                // What a parameter points to; an alignment follows as above, and is the pointee's.
                ".ptr" => {
                    for space in [".global", ".shared", ".local", ".const"] {
                        self.take_word(space)?;
                    }
                    if self.take_word(".align")? {
                        self.natural("an alignment")?;
                    }
                }
                word if word.starts_with('.') => {
                    let found = Type::named(&word[1..]).filter(|ty| !ty.is_predicate());
                    ty = Some(found.ok_or_else(|| self.refuse(format!("{word} is not known here")))?);
                }
                name if name.contains(['.', ':']) => return Err(self.refuse(format!("{name} cannot be a name"))),
                name => {
                    let Some(ty) = ty else { return Err(self.refuse(format!("{name} has no type"))) };
                    return self.dimensions(name, ty, align, per_element);
                }
            }
        }
    }

    pub(super) fn dimensions(
        &mut self,
        name: &'a str,
        ty: Type,
        align: Option<u64>,
        first: u64,
    ) -> Result<Declared<'a>, Refusal> {
        let mut count = Some(first);
        while self.take('[')? {
            if self.take(']')? {
                count = None;
                break;
            }
            let elements = self.natural("a number of elements")?;
            self.expect(']')?;
            count = count.and_then(|known| known.checked_mul(elements));
            if count.is_none() {
                return Err(self.refuse(format!("{name} is too large")));
            }
        }
        let natural = ty.size_bytes() as u64 * first;
        Ok(Declared { name, ty, align: align.unwrap_or(natural), count })
    }
}
