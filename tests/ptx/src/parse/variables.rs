//! Variables, of modules and of functions, and what they begin with.

use crate::program::SharedVariable;
use crate::types::Class;
use crate::{Global, Refusal, limits};

use super::body::{Body, Symbol};
use super::directives::Builder;
use super::layout::Declared;
use super::{Text, Token};

impl<'a> Body<'a, '_> {
    /// What begins with a dot, which was read.
    pub(super) fn declaration(&mut self, word: &'a str) -> Result<(), Refusal> {
        match word {
            ".reg" => self.registers(),
            ".local" => self.variables(|body, declared| {
                body.check_alignment(&declared)?;
                let offset = body.size_of(&declared).and_then(|size_bytes| {
                    let most = limits::LOCAL_BYTES;
                    body.locals.add(size_bytes, declared.align, most).ok_or_else(|| body.too_large(&declared))
                })?;
                body.declare(declared.name, Symbol::Local { offset })
            }),
            ".param" => self.variables(|body, declared| {
                body.check_alignment(&declared)?;
                let size_bytes = body.size_of(&declared)?;
                let most = limits::PARAMETER_AREA_BYTES;
                let offset = body.parameters.add(size_bytes, declared.align, most);
                let offset = offset.ok_or_else(|| body.too_large(&declared))?;
                let used = body.parameters.size_bytes as usize;
                body.function.parameter_bytes = body.function.parameter_bytes.max(used);
                body.declare(declared.name, Symbol::Parameter { offset, size_bytes })
            }),
            ".shared" => self.variables(|body, declared| {
                let shared = body.builder.shared(body.text, &declared, false)?;
                body.declare(declared.name, shared)
            }),
            ".global" | ".const" => self.variables(|body, declared| {
                let name = format!("{}.{}", body.function.name, declared.name);
                let global = body.builder.global(body.text, &declared, name, word == ".const")?;
                body.declare(declared.name, global)
            }),
            // Asks for no more than speed.
            ".pragma" => self.text.pragma(),
            // Says where the text comes from.
            ".loc" => self.text.location(),
            _ => Err(self.text.refuse("this directive is not known here")),
        }
    }

    /// Each of a list of variables of one type: `.local .b32 a, b[2];`
    fn variables(
        &mut self,
        mut each: impl FnMut(&mut Self, Declared<'a>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let first = self.text.declared()?;
        each(self, first)?;
        while self.text.take(',')? {
            let next = self.text.declared_again(&first)?;
            each(self, next)?;
        }
        self.text.expect(';')
    }

    fn size_of(&self, declared: &Declared<'_>) -> Result<u64, Refusal> {
        declared.size_bytes().ok_or_else(|| self.too_large(declared))
    }

    fn check_alignment(&self, declared: &Declared<'_>) -> Result<(), Refusal> {
        if declared.align > limits::FRAME_ALIGNMENT {
            return Err(self.text.refuse(format!("{} has a larger alignment than there is here", declared.name)));
        }
        Ok(())
    }

    fn too_large(&self, declared: &Declared<'_>) -> Refusal {
        self.text.refuse(format!("{} has no size, or is too large", declared.name))
    }
}

impl<'a> Text<'a> {
    /// `.pragma "nounroll";`
    pub(super) fn pragma(&mut self) -> Result<(), Refusal> {
        loop {
            let Token::Quoted(_) = self.next()? else { return Err(self.refuse("it has no string")) };
            if !self.take(',')? {
                return self.expect(';');
            }
        }
    }

    /// `.file 1 "name", 1234, 56`, behind the word.
    pub(super) fn file(&mut self) -> Result<(), Refusal> {
        self.natural("a file's number")?;
        let Token::Quoted(_) = self.next()? else { return Err(self.refuse("it has no string")) };
        while self.take(',')? {
            self.natural("a number")?;
        }
        Ok(())
    }

    /// `.loc 1 20 3, function_name $L__info0, inlined_at 1 40 3`, behind the word.
    pub(super) fn location(&mut self) -> Result<(), Refusal> {
        let numbers = |text: &mut Self| (0..3).try_for_each(|_| text.natural("a number").map(drop));
        numbers(self)?;
        while self.take(',')? {
            match self.word("function_name or inlined_at")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.take('+')? {
                        self.natural("a number")?;
                    }
                }
                "inlined_at" => numbers(self)?,
                _ => return Err(self.refuse("function_name or inlined_at was expected")),
            }
        }
        Ok(())
    }

    /// `.section .debug_info { .b8 1 .b32 .debug_abbrev }`, behind the word: for debuggers.
    pub(super) fn section(&mut self) -> Result<(), Refusal> {
        let name = self.word("a section")?;
        if !name.starts_with(".debug_") {
            return Err(self.refuse(format!("{name} is not known here")));
        }
        self.expect('{')?;
        while !self.take('}')? {
            match self.peek() {
                Token::Number(_) | Token::Word(_) | Token::Sign('+' | '-' | ',' | ':') => drop(self.next()?),
                _ => return Err(self.unexpected("data of debuggers")),
            }
        }
        Ok(())
    }

    /// One more of the same type.
    fn declared_again(&mut self, first: &Declared<'a>) -> Result<Declared<'a>, Refusal> {
        let name = self.new_name("a name")?;
        self.dimensions(name, first.ty, Some(first.align), 1)
    }

    /// The numbers behind a `=`, as the bytes of the variable, in `size_bytes`.
    fn initial(&mut self, declared: &Declared<'_>, size_bytes: u64) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        let mut depth = 0;
        loop {
            while self.take('{')? {
                depth += 1;
                // `{{1, 2}, {3}}` would have gaps.
                if depth > 1 {
                    return Err(self.refuse(format!("{}: values in two brackets are not known", declared.name)));
                }
            }
            let value = self.constant(declared.ty)?;
            bytes.extend_from_slice(&value.to_le_bytes()[..declared.ty.size_bytes()]);
            if bytes.len() as u64 > size_bytes {
                return Err(self.refuse(format!("{} has more values than elements", declared.name)));
            }
            if depth == 0 || !self.take(',')? {
                break;
            }
        }
        if depth == 1 {
            self.expect('}')?;
        }
        Ok(bytes)
    }
}

impl<'a> Builder<'a> {
    /// A variable in shared memory.
    pub(super) fn shared(
        &mut self,
        text: &Text<'a>,
        declared: &Declared<'a>,
        is_extern: bool,
    ) -> Result<Symbol, Refusal> {
        let size_bytes = match declared.count {
            None if is_extern => None,
            None => return Err(text.refuse(format!("{} has no size, and is not .extern", declared.name))),
            Some(_) => match declared.size_bytes() {
                Some(size_bytes) if size_bytes <= limits::SHARED_BYTES => Some(size_bytes),
                _ => return Err(text.refuse(format!("{} is too large", declared.name))),
            },
        };
        self.shared.push(SharedVariable { size_bytes, align: declared.align });
        Ok(Symbol::Shared(self.shared.len() as u32 - 1))
    }

    /// A variable in global or constant memory, with its first value.
    pub(super) fn global(
        &mut self,
        text: &mut Text<'a>,
        declared: &Declared<'a>,
        name: String,
        is_constant: bool,
    ) -> Result<Symbol, Refusal> {
        let size_bytes = declared.size_bytes().filter(|&size_bytes| size_bytes <= limits::VARIABLE_BYTES);
        let Some(size_bytes) = size_bytes else {
            return Err(text.refuse(format!("{} has no size, or is too large", declared.name)));
        };
        let initial = if text.take('=')? {
            if matches!(declared.ty.class, Class::Halves | Class::Brains) {
                return Err(text.refuse(format!("{}: values of this type are not known", declared.name)));
            }
            text.initial(declared, size_bytes)?
        } else {
            Vec::new()
        };
        let (size, align) = (size_bytes as usize, declared.align as usize);
        self.globals.push(Global { name, size, align, initial, is_constant });
        Ok(Symbol::Global(self.globals.len() as u32 - 1))
    }
}
