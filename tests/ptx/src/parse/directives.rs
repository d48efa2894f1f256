//! What stands at the top of a text: version, target, variables, functions and kernels.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kernel::Linked;
use crate::program::{Function, Program, SharedVariable, Slot};
use crate::{Global, Kernel, Module, Parameter, Refusal, limits};

use super::body::{Body, Symbol};
use super::calls::Signature;
use super::layout::Layout;
use super::{Text, Token};

/// A function that is declared, and perhaps defined.
struct Entry<'a> {
    name: &'a str,
    is_defined: bool,
    /// The line of its first call.
    called: Option<usize>,
    function: Function,
}

/// What is known of a kernel besides its code.
struct Head<'a> {
    name: &'a str,
    function: u32,
    parameters: Vec<Parameter>,
    most_threads: Option<[u32; 3]>,
    exact_threads: Option<[u32; 3]>,
}

/// A module that is being read.
#[derive(Default)]
pub(crate) struct Builder<'a> {
    /// The number of the target: 75 of `sm_75`.
    pub(crate) chip: u32,
    pub(super) globals: Vec<Global>,
    pub(super) shared: Vec<SharedVariable>,
    names: HashMap<&'a str, Symbol>,
    opcodes: HashMap<&'a str, u32>,
    functions: Vec<Entry<'a>>,
    heads: Vec<Head<'a>>,
}

impl<'a> Builder<'a> {
    /// The number of an opcode's text.
    pub(super) fn opcode(&mut self, text: &'a str) -> u32 {
        let next = self.opcodes.len() as u32;
        *self.opcodes.entry(text).or_insert(next)
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Symbol> {
        self.names.get(name).copied()
    }

    pub(super) fn called(&mut self, function: u32, line: usize) {
        self.functions[function as usize].called.get_or_insert(line);
    }

    pub(super) fn signature(&self, function: u32) -> Signature<'_> {
        let Function { inputs, results, .. } = &self.functions[function as usize].function;
        Signature { inputs, results }
    }

    /// Nothing was declared yet.
    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn declare(&mut self, text: &Text<'a>, name: &'a str, symbol: Symbol) -> Result<(), Refusal> {
        if self.names.insert(name, symbol).is_some() {
            return Err(text.refuse(format!("{name} is declared twice")));
        }
        Ok(())
    }

    /// `.func (.param .b32 result) name (.param .b64 a) { ... }`, or with a `;`, behind the first word.
    fn function(&mut self, text: &mut Text<'a>) -> Result<(), Refusal> {
        let (mut names, mut layout) = (HashMap::new(), Layout::default());
        let mut results = Vec::new();
        // Inputs come first in memory, results first in the text; so these are placed again below.
        if text.take('(')? {
            results = parameters(text)?;
            if results.len() > 1 {
                return Err(text.refuse("it has more than one result"));
            }
        }
        let name = text.new_name("a function's name")?;
        let inputs = if text.take('(')? { parameters(text)? } else { Vec::new() };
        let mut slots = [Vec::new(), Vec::new()];
        for (kind, list) in [inputs, results].into_iter().enumerate() {
            for Listed { name, size_bytes, align } in list {
                let offset = layout.add(size_bytes, align, limits::PARAMETER_BYTES);
                let offset = offset.ok_or_else(|| text.refuse("parameters are too large"))?;
                if names.insert(name, Symbol::Parameter { offset, size_bytes }).is_some() {
                    return Err(text.refuse(format!("{name} is declared twice")));
                }
                slots[kind].push(Slot {
                    offset: offset as usize,
                    size_bytes: size_bytes as usize,
                    align: align as usize,
                });
            }
        }
        // It has no effect on what it does.
        text.take_word(".noreturn")?;
        let [inputs, results] = slots;
        let function = Function { name: name.to_owned(), inputs, results, ..Function::default() };
        let number = self.entry(text, name, &function)?;
        if text.take(';')? {
            return Ok(());
        }
        self.define(text, number, function, names, layout)
    }

    /// The number of the function of that name, which is declared here, perhaps once more.
    fn entry(&mut self, text: &Text<'a>, name: &'a str, function: &Function) -> Result<u32, Refusal> {
        match self.names.get(name) {
            Some(&Symbol::Function(number)) => {
                let known = &self.functions[number as usize].function;
                if known.inputs != function.inputs || known.results != function.results {
                    return Err(text.refuse(format!("{name} was declared with other parameters")));
                }
                Ok(number)
            }
            Some(_) => Err(text.refuse(format!("{name} is declared twice"))),
            None => {
                let (inputs, results) = (function.inputs.clone(), function.results.clone());
                let function = Function { inputs, results, ..Function::default() };
                self.functions.push(Entry { name, is_defined: false, called: None, function });
                let number = self.functions.len() as u32 - 1;
                self.names.insert(name, Symbol::Function(number));
                Ok(number)
            }
        }
    }

    fn define(
        &mut self,
        text: &mut Text<'a>,
        number: u32,
        function: Function,
        names: HashMap<&'a str, Symbol>,
        layout: Layout,
    ) -> Result<(), Refusal> {
        if self.functions[number as usize].is_defined {
            return Err(text.refuse(format!("{} is defined twice", function.name)));
        }
        let function = Body::new(text, self, function, names, layout).read()?;
        let entry = &mut self.functions[number as usize];
        (entry.function, entry.is_defined) = (function, true);
        Ok(())
    }

    /// `.entry name (parameters) .maxntid 128 { ... }`, behind the first word.
    fn kernel(&mut self, text: &mut Text<'a>) -> Result<(), Refusal> {
        let name = text.new_name("a kernel's name")?;
        let listed = if text.take('(')? { parameters(text)? } else { Vec::new() };
        let (mut names, mut layout, mut known) = (HashMap::new(), Layout::default(), Vec::new());
        let mut inputs = Vec::new();
        for Listed { name, size_bytes, align } in listed {
            let offset = layout.add(size_bytes, align, limits::PARAMETER_BYTES);
            let offset = offset.ok_or_else(|| text.refuse("parameters are too large"))?;
            if names.insert(name, Symbol::Parameter { offset, size_bytes }).is_some() {
                return Err(text.refuse(format!("{name} is declared twice")));
            }
            let (offset, size, align) = (offset as usize, size_bytes as usize, align as usize);
            inputs.push(Slot { offset, size_bytes: size, align });
            known.push(Parameter { offset, size, align });
        }
        let mut head = Head { name, function: 0, parameters: known, most_threads: None, exact_threads: None };
        while let Token::Word(word) = text.peek() {
            text.begin(word, text.next_line());
            text.next()?;
            match word {
                ".maxntid" => head.most_threads = Some(text.dimensions_of_block()?),
                ".reqntid" => head.exact_threads = Some(text.dimensions_of_block()?),
                // How well it runs, not what it does.
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" => drop(text.natural("a number")?),
                ".pragma" => text.pragma()?,
                _ => return Err(text.refuse("this directive is not known here")),
            }
        }
        let function = Function { name: name.to_owned(), inputs, ..Function::default() };
        self.declare(text, name, Symbol::Kernel)?;
        head.function = self.functions.len() as u32;
        self.functions.push(Entry { name, is_defined: false, called: None, function: Function::default() });
        self.define(text, head.function, function, names, layout)?;
        self.heads.push(head);
        Ok(())
    }

    /// A variable at the top, behind the word that says in which memory.
    fn variable(&mut self, text: &mut Text<'a>, space: &str, is_extern: bool) -> Result<(), Refusal> {
        let declared = text.declared()?;
        let symbol = match space {
            ".shared" => self.shared(text, &declared, is_extern)?,
            _ => self.global(text, &declared, declared.name.to_owned(), space == ".const")?,
        };
        self.declare(text, declared.name, symbol)?;
        text.expect(';')
    }

    fn finish(self, version: (u32, u32), target: String) -> Result<Module, Refusal> {
        for entry in &self.functions {
            if let Some(line) = entry.called.filter(|_| !entry.is_defined) {
                return Err(Refusal::new(line, entry.name, "this function is called, but not defined"));
            }
        }
        let mut opcodes = vec![String::new(); self.opcodes.len()];
        for (text, number) in self.opcodes {
            opcodes[number as usize] = text.to_owned();
        }
        let functions = self.functions.into_iter().map(|entry| entry.function).collect();
        let program = Arc::new(Program { functions, globals: self.globals, shared: self.shared, opcodes });
        let kernels = self.heads.into_iter().map(|head| {
            let Head { name, function, parameters, most_threads, exact_threads } = head;
            let linked = Linked::new(&program, function);
            Kernel {
                name: name.to_owned(),
                program: program.clone(),
                function,
                parameters,
                most_threads,
                exact_threads,
                linked,
            }
        });
        Ok(Module { version, target, kernels: kernels.collect(), program })
    }
}

/// A parameter of a list.
struct Listed<'a> {
    name: &'a str,
    size_bytes: u64,
    align: u64,
}

/// `.param .u64 a, .param .align 8 .b8 b[136])`, behind the opening bracket.
fn parameters<'a>(text: &mut Text<'a>) -> Result<Vec<Listed<'a>>, Refusal> {
    let mut list = Vec::new();
    if text.take(')')? {
        return Ok(list);
    }
    loop {
        if !text.take_word(".param")? {
            return Err(text.unexpected(".param"));
        }
        let declared = text.declared()?;
        let Some(size_bytes) = declared.size_bytes() else {
            return Err(text.refuse(format!("{} has no size", declared.name)));
        };
        list.push(Listed { name: declared.name, size_bytes, align: declared.align });
        if text.take(')')? {
            return Ok(list);
        }
        text.expect(',')?;
    }
}

impl Text<'_> {
    /// One to three numbers.
    fn dimensions_of_block(&mut self) -> Result<[u32; 3], Refusal> {
        let mut dimensions = [1; 3];
        for (index, dimension) in dimensions.iter_mut().enumerate() {
            if index > 0 && !self.take(',')? {
                break;
            }
            let number = u32::try_from(self.natural("a number of threads")?);
            *dimension = number.map_err(|_| self.refuse("too many threads"))?;
        }
        Ok(dimensions)
    }

    /// `.version 8.2`, behind the word.
    fn version(&mut self) -> Result<(u32, u32), Refusal> {
        let Token::Number(digits) = self.next()? else { return Err(self.refuse("it has no number")) };
        let version =
            digits.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        version.ok_or_else(|| self.refuse(format!("{digits} is no version")))
    }
}

/// 90 of `sm_90` and of `sm_90a`.
fn chip(name: &str) -> Option<u32> {
    let number = name.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
    number.parse().ok().filter(|_| matches!(number.len(), 2 | 3) && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A whole text.
pub(crate) fn parse(text: &str) -> Result<Module, Refusal> {
    if text.len() > limits::TEXT_BYTES {
        return Err(Refusal::new(1, "text", format!("it has more than {} bytes", limits::TEXT_BYTES)));
    }
    let text = &mut Text::new(text)?;
    let (mut builder, mut version, mut target) = (Builder::default(), None, None);
    let (mut address_size, mut is_extern, mut is_linked) = (None, false, false);
    while let Token::Word(word) = text.peek() {
        text.begin(word, text.next_line());
        text.next()?;
        if version.is_none() && word != ".version" {
            return Err(text.refuse("a text begins with .version"));
        }
        let is_variable = matches!(word, ".global" | ".const" | ".shared");
        if std::mem::take(&mut is_linked) && !is_variable && !matches!(word, ".func" | ".entry") {
            return Err(text.refuse("a variable or a function was expected"));
        }
        match word {
            ".version" if version.is_none() => version = Some(text.version()?),
            ".target" if target.is_none() => {
                let name = text.word("a target")?;
                builder.chip = chip(name).ok_or_else(|| text.refuse(format!("{name} is no target that is known")))?;
                target = Some(name.to_owned());
                while text.take(',')? {
                    // Of debuggers; texture modes and other chips are refused.
                    if !text.take_word("debug")? {
                        return Err(text.unexpected("debug"));
                    }
                }
            }
            ".address_size" if address_size.is_none() && builder.is_empty() => {
                address_size = Some(text.natural("a number of bits")?);
                if address_size != Some(64) {
                    return Err(text.refuse("addresses have 64 bits here"));
                }
            }
            // Who else may name it: there is one text, so nobody.
            ".visible" | ".weak" | ".common" => is_linked = true,
            // Defined elsewhere: shared memory of the launch, or a function, which must then not be called.
            ".extern" => match text.peek() {
                Token::Word(".shared" | ".func") => (is_linked, is_extern) = (true, true),
                _ => return Err(text.refuse("there is no other text that has it")),
            },
            ".global" | ".const" | ".shared" => {
                builder.variable(text, word, std::mem::take(&mut is_extern))?;
            }
            ".func" => {
                is_extern = false;
                builder.function(text)?;
            }
            ".entry" => builder.kernel(text)?,
            ".pragma" => text.pragma()?,
            ".file" => text.file()?,
            ".section" => text.section()?,
            ".loc" => text.location()?,
            _ => return Err(text.refuse("this directive is not known here")),
        }
    }
    if text.peek() != Token::End || is_linked {
        return Err(text.unexpected("a directive"));
    }
    let (Some(version), Some(target)) = (version, target) else {
        return Err(Refusal::new(text.next_line(), "text", "it has no .version or no .target"));
    };
    builder.finish(version, target)
}
