//! The operands of instructions: registers, constants, addresses, and lists of them.

use crate::Refusal;
use crate::instruction::{Address, Base, Operand, Predicate, Register, SINK, Space};
use crate::types::{self, Class, Type};

use super::body::{Body, Symbol};
use super::text::natural;
use super::{Text, Token};

impl<'a> Body<'a, '_> {
    /// A register of at least `least` and at most `most` bits.
    pub(crate) fn register(&mut self, least: u32, most: u32) -> Result<Register, Refusal> {
        let name = self.text.word("a register")?;
        Ok(self.named_register(name, least, most)?.0)
    }

    /// The type of a register, as it was declared, must not be of another kind than that of the operand.
    fn check_kind(&mut self, name: &'a str, wanted: Type) -> Result<(), Refusal> {
        let Symbol::Register { ty, .. } = self.lookup(name)? else { return Ok(()) };
        let is_number = |ty: Type| matches!(ty.class, Class::Unsigned | Class::Signed);
        let is_bits = |ty: Type| ty.class == Class::Bits;
        if is_bits(ty) || is_bits(wanted) || is_number(ty) == is_number(wanted) {
            return Ok(());
        }
        Err(self.text.refuse(format!("{name} is declared with another type")))
    }

    /// The register, and how many bits it has.
    fn named_register(&mut self, name: &'a str, least: u32, most: u32) -> Result<(Register, u32), Refusal> {
        match self.lookup(name)? {
            Symbol::Register { register, ty } if (least..=most).contains(&ty.bits) => Ok((register, ty.bits)),
            Symbol::Register { ty, .. } => {
                let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
                Err(self.text.refuse(format!("{name} has {} bits, not {wanted}", ty.bits)))
            }
            _ => Err(self.text.refuse(format!("{name} is no register"))),
        }
    }

    /// A register for a result of so many bits, or `_`.
    pub(crate) fn destination(&mut self, bits: u32) -> Result<Register, Refusal> {
        Ok(self.destination_with_width(bits, bits)?.0)
    }

    /// A register for a result, which may be wider than that is, or `_`; and how many bits it has.
    pub(crate) fn destination_with_width(&mut self, least: u32, most: u32) -> Result<(Register, u32), Refusal> {
        if self.text.take_word("_")? {
            return Ok((SINK, most));
        }
        let name = self.text.word("a register")?;
        self.named_register(name, least, most)
    }

    /// The next operand, behind a comma.
    pub(crate) fn next_source(&mut self, ty: Type) -> Result<Operand, Refusal> {
        self.text.expect(',')?;
        self.source(ty)
    }

    /// A register of the type's width, or a constant.
    pub(crate) fn source(&mut self, ty: Type) -> Result<Operand, Refusal> {
        self.source_of(ty, ty.bits)
    }

    /// As above; a register may have up to `most` bits.
    pub(crate) fn source_of(&mut self, ty: Type, most: u32) -> Result<Operand, Refusal> {
        match self.text.peek() {
            Token::Word("WARP_SZ") if ty.is_integer() => {
                self.text.next()?;
                Ok(Operand::Immediate(32))
            }
            Token::Word(name) => {
                self.check_kind(name, ty)?;
                Ok(Operand::Register(self.register(ty.bits, most)?))
            }
            _ => Ok(Operand::Immediate(self.text.constant(ty)?)),
        }
    }

    /// A predicate, with or without a `!`.
    pub(crate) fn predicate(&mut self) -> Result<Predicate, Refusal> {
        let negated = self.text.take('!')?;
        Ok(Predicate { value: self.source(types::PREDICATE)?, negated })
    }

    /// Whether the next operand is a predicate's register.
    pub(crate) fn next_is_predicate(&mut self) -> Result<bool, Refusal> {
        let Token::Word(name) = self.text.peek() else { return Ok(false) };
        Ok(matches!(self.lookup(name)?, Symbol::Register { ty: types::PREDICATE, .. }))
    }

    /// `{a, b}`, or one without brackets.
    pub(crate) fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T, Refusal>) -> Result<Vec<T>, Refusal> {
        if !self.text.take('{')? {
            return Ok(vec![one(self)?]);
        }
        let mut list = vec![one(self)?];
        while self.text.take(',')? {
            if list.len() == 8 {
                return Err(self.text.refuse("a list of more than 8 registers"));
            }
            list.push(one(self)?);
        }
        self.text.expect('}')?;
        Ok(list)
    }

    /// The width of the first register of a list whose bracket is next.
    pub(crate) fn first_width(&mut self) -> Result<u32, Refusal> {
        for name in self.text.words_ahead(8) {
            if let Symbol::Register { ty, .. } = self.lookup(name)? {
                return Ok(ty.bits);
            }
        }
        Err(self.text.refuse("its parts are no registers"))
    }

    /// `[register+4]`, `[variable]`, and, in local memory, `[16]`.
    pub(crate) fn address(&mut self, space: Space) -> Result<Address, Refusal> {
        self.text.expect('[')?;
        let base = match self.text.peek() {
            // Only local memory has no variables of others.
            Token::Number(_) if space == Space::Local => Base::Nothing,
            _ => {
                let name = self.text.word("an address")?;
                return self.address_from(space, name);
            }
        };
        let offset = self.text.offset(false)?;
        self.text.expect(']')?;
        Ok(Address { base, offset })
    }

    fn address_from(&mut self, space: Space, name: &'a str) -> Result<Address, Refusal> {
        let (base, mut offset) = match self.lookup(name)? {
            Symbol::Register { .. } => {
                let least = if matches!(space, Space::Generic | Space::Global | Space::Constant) { 64 } else { 32 };
                (Base::Register(self.named_register(name, least, 64)?.0), 0)
            }
            symbol => {
                let (base, offset, found) = self.place(name, symbol)?;
                if found != space && !(space == Space::Generic && found == Space::Global) {
                    return Err(self.text.refuse(format!("{name} is not in that memory")));
                }
                (base, offset)
            }
        };
        let negative = match self.text.peek() {
            Token::Sign('+') => {
                self.text.next()?;
                Some(self.text.take('-')?)
            }
            Token::Sign('-') => {
                self.text.next()?;
                Some(true)
            }
            _ => None,
        };
        if let Some(negative) = negative {
            let more = self.text.offset(negative)?;
            offset = i64::checked_add(offset, more).ok_or_else(|| self.text.refuse("an offset is too large"))?;
        }
        self.text.expect(']')?;
        Ok(Address { base, offset })
    }

    /// Where a variable is: in which memory, relative to what.
    pub(crate) fn place(&self, name: &str, symbol: Symbol) -> Result<(Base, i64, Space), Refusal> {
        Ok(match symbol {
            Symbol::Shared(variable) => (Base::Shared(variable), 0, Space::Shared),
            Symbol::Global(variable) => {
                let is_constant = self.builder.globals[variable as usize].is_constant;
                (Base::Global(variable), 0, if is_constant { Space::Constant } else { Space::Global })
            }
            Symbol::Local { offset } => (Base::Local, offset as i64, Space::Local),
            Symbol::Parameter { offset, .. } => (Base::Parameter, offset as i64, Space::Parameter),
            Symbol::Register { .. } | Symbol::Function(_) | Symbol::Kernel => {
                return Err(self.text.refuse(format!("{name} is no variable")));
            }
        })
    }
}

impl Text<'_> {
    /// A whole number as an offset.
    fn offset(&mut self, negative: bool) -> Result<i64, Refusal> {
        let offset = i64::try_from(self.natural("an offset")?);
        let offset = offset.map_err(|_| self.refuse("an offset is too large"))?;
        Ok(if negative { -offset } else { offset })
    }

    /// A constant of that type, as its bits.
    pub(crate) fn constant(&mut self, ty: Type) -> Result<u64, Refusal> {
        let negative = self.take('-')?;
        let Token::Number(digits) = self.peek() else { return Err(self.unexpected("an operand")) };
        let value = constant(ty, negative, digits).ok_or_else(|| {
            let digits: String = digits.chars().take(40).collect();
            let sign = if negative { "-" } else { "" };
            self.refuse(format!("{sign}{digits} is no constant of this type"))
        })?;
        self.next()?;
        Ok(value)
    }
}

fn constant(ty: Type, negative: bool, digits: &str) -> Option<u64> {
    let float = || match digits.as_bytes() {
        [b'0', b'f' | b'F', bits @ ..] if bits.len() == 8 && ty.bits == 32 => natural(&format!("0x{}", &digits[2..])),
        [b'0', b'd' | b'D', bits @ ..] if bits.len() == 16 && ty.bits == 64 => natural(&format!("0x{}", &digits[2..])),
        _ if digits.contains('.') && ty.bits == 32 => Some(u64::from(digits.parse::<f32>().ok()?.to_bits())),
        _ if digits.contains('.') && ty.bits == 64 => Some(digits.parse::<f64>().ok()?.to_bits()),
        _ => None,
    };
    let float = || if negative && !digits.contains('.') { None } else { float() };
    let sign = if negative && ty.bits > 1 { 1 << (ty.bits - 1) } else { 0 };
    match ty.class {
        Class::Float if ty.bits >= 32 => float().map(|bits| bits ^ sign),
        Class::Float | Class::Brain | Class::Halves | Class::Brains => None,
        // Any number but 0 is true.
        Class::Predicate => natural(digits).map(|value| u64::from(value != 0)),
        Class::Bits if digits.starts_with(['0']) && float().is_some() => float().map(|bits| bits ^ sign),
        _ => {
            let value = i128::from(natural(digits)?);
            let value = if negative { -value } else { value };
            let (least, most) = (-(1_i128 << (ty.bits - 1)), (1_i128 << ty.bits) - 1);
            (least..=most).contains(&value).then_some(value as u64 & types::mask(ty.bits))
        }
    }
}
