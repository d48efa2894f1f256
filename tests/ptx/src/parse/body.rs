//! A function's statements: blocks in brackets, declarations, labels, instructions.

use std::collections::HashMap;

use crate::decode;
use crate::instruction::{Guard, Instruction, Op, Register};
use crate::program::{Function, Origin};
use crate::spaces::UNWRITTEN_WORD;
use crate::types::{self, Type};
use crate::{Refusal, limits};

use super::directives::Builder;
use super::layout::Layout;
use super::{Opcode, Text, Token};

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) enum Symbol {
    Register { register: Register, ty: Type },
    Local { offset: u64 },
    Parameter { offset: u64, size_bytes: u64 },
    Shared(u32),
    Global(u32),
    Function(u32),
    Kernel,
}

impl Symbol {
    pub(crate) fn is_register(self) -> bool {
        matches!(self, Self::Register { .. })
    }
}

/// The names of a block in brackets.
#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Symbol>,
    /// `%r<41>`: how many there are, and of which type. They get a number where they are first used.
    ranges: HashMap<&'a str, (u64, Type)>,
    /// How much of parameter memory was in use where it began.
    parameter_bytes: u64,
}

/// A label; jumps name it by its place in the list, until all are known.
struct Label<'a> {
    name: &'a str,
    first_use: usize,
    target: Option<u32>,
}

/// A function that is being read.
pub(crate) struct Body<'a, 't> {
    pub(crate) text: &'t mut Text<'a>,
    pub(crate) builder: &'t mut Builder<'a>,
    pub(super) function: Function,
    pub(super) locals: Layout,
    pub(super) parameters: Layout,
    scopes: Vec<Scope<'a>>,
    labels: Vec<Label<'a>>,
    label_numbers: HashMap<&'a str, u32>,
    tables: HashMap<&'a str, u32>,
}

impl<'a, 't> Body<'a, 't> {
    /// `function` has its inputs and results, `names` are theirs, `parameters` is where they are.
    pub(super) fn new(
        text: &'t mut Text<'a>,
        builder: &'t mut Builder<'a>,
        mut function: Function,
        names: HashMap<&'a str, Symbol>,
        parameters: Layout,
    ) -> Self {
        // The sink.
        function.registers.push(0);
        let scopes = vec![Scope { names, ..Scope::default() }];
        function.parameter_bytes = parameters.size_bytes as usize;
        Self {
            text,
            builder,
            function,
            locals: Layout::default(),
            parameters,
            scopes,
            labels: Vec::new(),
            label_numbers: HashMap::new(),
            tables: HashMap::new(),
        }
    }

    /// Reads from the opening bracket to the closing one.
    pub(super) fn read(mut self) -> Result<Function, Refusal> {
        self.text.expect('{')?;
        self.open()?;
        // The outermost one has the parameters.
        while self.scopes.len() > 1 {
            self.statement()?;
        }
        self.finish()
    }

    fn open(&mut self) -> Result<(), Refusal> {
        if self.scopes.len() > limits::NESTING {
            return Err(self.text.refuse("brackets are nested too deeply"));
        }
        self.scopes.push(Scope { parameter_bytes: self.parameters.size_bytes, ..Scope::default() });
        Ok(())
    }

    fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.parameters.size_bytes = scope.parameter_bytes;
        }
    }

    fn statement(&mut self) -> Result<(), Refusal> {
        let line = self.text.next_line();
        match self.text.peek() {
            Token::Sign('{') => {
                self.text.next()?;
                self.open()
            }
            Token::Sign('}') => {
                self.text.next()?;
                self.close();
                Ok(())
            }
            Token::Sign('@') => {
                self.text.begin("@", line);
                self.text.next()?;
                let guard = self.guard()?;
                let word = self.text.word("an instruction")?;
                self.instruction(Some(guard), word, line)
            }
            Token::Word(word) if word.starts_with('.') => {
                self.text.begin(word, line);
                self.text.next()?;
                self.declaration(word)
            }
            Token::Word(word) => {
                self.text.next()?;
                if self.text.take(':')? { self.label(word, line) } else { self.instruction(None, word, line) }
            }
            _ => Err(self.text.unexpected("an instruction")),
        }
    }

    fn guard(&mut self) -> Result<Guard, Refusal> {
        let when = !self.text.take('!')?;
        let register = self.register(1, 1)?;
        Ok(Guard { register, when })
    }

    fn label(&mut self, name: &'a str, line: usize) -> Result<(), Refusal> {
        self.text.begin(name, line);
        if name.contains(['.', ':']) {
            return Err(self.text.refuse("this cannot be a label"));
        }
        if self.text.take_word(".branchtargets")? {
            return self.branch_targets(name);
        }
        let here = self.function.code.len() as u32;
        let number = self.label_number(name) as usize;
        let target = &mut self.labels[number].target;
        if target.replace(here).is_some() { Err(self.text.refuse("this label stands twice")) } else { Ok(()) }
    }

    /// `name: .branchtargets L1, L2;`: where an indexed jump may go.
    fn branch_targets(&mut self, name: &'a str) -> Result<(), Refusal> {
        let mut targets = Vec::new();
        loop {
            let label = self.text.word("a label")?;
            targets.push(self.label_number(label));
            if !self.text.take(',')? {
                break;
            }
        }
        self.text.expect(';')?;
        self.function.tables.push(targets.into());
        if self.tables.insert(name, self.function.tables.len() as u32 - 1).is_some() {
            return Err(self.text.refuse("this label stands twice"));
        }
        Ok(())
    }

    /// The table of that name, which stands before its use.
    pub(crate) fn table(&mut self) -> Result<u32, Refusal> {
        let name = self.text.word("a list of targets")?;
        self.tables.get(name).copied().ok_or_else(|| self.text.refuse(format!("{name} is no list of targets")))
    }

    /// A label as the target of a jump.
    pub(crate) fn target(&mut self) -> Result<u32, Refusal> {
        let name = self.text.word("a label")?;
        Ok(self.label_number(name))
    }

    fn label_number(&mut self, name: &'a str) -> u32 {
        let (labels, line) = (&mut self.labels, self.text.subject_line());
        *self.label_numbers.entry(name).or_insert_with(|| {
            labels.push(Label { name, first_use: line, target: None });
            labels.len() as u32 - 1
        })
    }

    fn instruction(&mut self, guard: Option<Guard>, word: &'a str, line: usize) -> Result<(), Refusal> {
        self.text.begin(word, line);
        let op = decode::decode(self, Opcode::new(word, line))?;
        self.text.expect(';')?;
        self.push(guard, op, word, line);
        Ok(())
    }

    fn push(&mut self, guard: Option<Guard>, op: Op, opcode: &'a str, line: usize) {
        let opcode = self.builder.opcode(opcode);
        self.function.origins.push(Origin { line: line as u32, opcode });
        self.function.code.push(Instruction { guard, op });
    }

    fn finish(mut self) -> Result<Function, Refusal> {
        // Whoever comes to the end returns.
        let line = self.text.next_line();
        self.push(None, Op::Return, "}", line);
        let mut targets = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            let missing = || Refusal::new(label.first_use, label.name, "there is no such label");
            targets.push(label.target.ok_or_else(missing)?);
        }
        for instruction in &mut self.function.code {
            if let Op::Jump(target) = &mut instruction.op {
                *target = targets[*target as usize];
            }
        }
        for target in self.function.tables.iter_mut().flat_map(|table| table.iter_mut()) {
            *target = targets[*target as usize];
        }
        self.function.local_bytes = self.locals.size_bytes as usize;
        Ok(self.function)
    }

    /// A new register.
    fn new_register(&mut self, bits: u32) -> Result<Register, Refusal> {
        let registers = &mut self.function.registers;
        if registers.len() == limits::REGISTERS {
            return Err(self.text.refuse(format!("a function uses more than {} registers", limits::REGISTERS)));
        }
        registers.push(UNWRITTEN_WORD & types::mask(bits));
        Ok(registers.len() as Register - 1)
    }

    /// `.reg .b32 a, %r<41>;`
    pub(super) fn registers(&mut self) -> Result<(), Refusal> {
        let word = self.text.word("a type")?;
        let ty = word.strip_prefix('.').and_then(Type::named).filter(|ty| ty.bits != 8);
        let Some(ty) = ty else {
            return Err(self.text.refuse(format!("{word} is not known as a register's type")));
        };
        loop {
            let name = self.text.new_name("a register's name")?;
            let is_new = if self.text.take('<')? {
                let count = self.text.natural("a number of registers")?;
                self.text.expect('>')?;
                self.scopes.last_mut().is_none_or(|scope| scope.ranges.insert(name, (count, ty)).is_none())
            } else {
                let register = self.new_register(ty.bits)?;
                self.declare(name, Symbol::Register { register, ty })?;
                true
            };
            if !is_new {
                return Err(self.text.refuse(format!("{name} is declared twice")));
            }
            if !self.text.take(',')? {
                return self.text.expect(';');
            }
        }
    }

    /// Gives a name a meaning in the innermost block.
    pub(super) fn declare(&mut self, name: &'a str, symbol: Symbol) -> Result<(), Refusal> {
        let scope = self.scopes.last_mut();
        if scope.is_some_and(|scope| scope.names.insert(name, symbol).is_some()) {
            return Err(self.text.refuse(format!("{name} is declared twice")));
        }
        Ok(())
    }

    /// What a name stands for.
    pub(crate) fn lookup(&mut self, name: &'a str) -> Result<Symbol, Refusal> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        // %r01 is not %r1.
        let number: Option<u64> = digits.parse().ok().filter(|_| digits == "0" || !digits.starts_with('0'));
        for depth in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[depth];
            if let Some(&symbol) = scope.names.get(name) {
                return Ok(symbol);
            }
            let range = scope.ranges.get(prefix).copied().zip(number);
            if let Some(((_, ty), _)) = range.filter(|((count, _), number)| number < count) {
                let symbol = Symbol::Register { register: self.new_register(ty.bits)?, ty };
                self.scopes[depth].names.insert(name, symbol);
                return Ok(symbol);
            }
        }
        self.builder.lookup(name).ok_or_else(|| self.text.refuse(format!("{name} is not declared")))
    }
}
