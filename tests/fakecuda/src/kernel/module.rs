//! Modules, which belong to a context, and their functions and variables.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::Arc;

use super::image;
use crate::boundary::{Answer, Call, In, Out};
use crate::code::Code;
use crate::context;
use crate::detector::Access;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::memory::{Found, Kind};
use crate::state::State;
use crate::thread;

/// Where a module's variables are: address and size by name.
pub(crate) type Globals = HashMap<String, (u64, usize)>;

/// See the module.
pub(crate) struct Module {
    device: usize,
    made: Arc<Stamp>,
    pub(crate) ptx: Arc<purlin_ptx::Module>,
    globals: Arc<Globals>,
    functions: HashMap<String, usize>,
}

/// A kernel of a module.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) device: usize,
    /// Its module was loaded.
    pub(crate) made: Arc<Stamp>,
    pub(crate) ptx: Arc<purlin_ptx::Module>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) name: Arc<str>,
    /// What a launch may ask for, if more than usual.
    pub(crate) most_dynamic_bytes: Option<u32>,
}

/// A buffer of the caller's for what is to be said of an image.
#[derive(Clone, Copy, Default)]
pub(crate) struct Log {
    buffer: usize,
    size_bytes: usize,
    /// The option that says the size is told how much was written.
    size_place: usize,
}

/// Numbers of CUjit_option.
const ERROR_LOG_BUFFER: u32 = 5;
const ERROR_LOG_SIZE: u32 = 6;
/// The last that 13.4 knows.
const LAST_OPTION: u32 = 40;

impl Log {
    /// The buffer for errors among the options; INVALID_VALUE for options that nobody knows.
    pub(crate) fn of_options(count: u32, options: In<u32>, values: *mut usize) -> Answer<Self> {
        let mut log = Self::default();
        let read = In::new(values.cast_const());
        for at in 0..count as usize {
            let value = read.get_at(at)?;
            match options.get_at(at)? {
                ERROR_LOG_BUFFER => log.buffer = value,
                ERROR_LOG_SIZE => {
                    // The value is an unsigned int in the place of a pointer.
                    (log.size_bytes, log.size_place) =
                        (value & 0xFFFF_FFFF, values.wrapping_add(at).expose_provenance());
                }
                0..=LAST_OPTION => {}
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(log)
    }

    fn say(self, text: &str) {
        let place = |address| std::ptr::with_exposed_provenance_mut::<c_char>(address);
        if self.buffer != 0 && self.size_bytes > 0 {
            Out::new(place(self.buffer)).set_text(text, self.size_bytes);
            Out::new(place(self.size_place).cast::<usize>()).set_if_wanted((text.len() + 1).min(self.size_bytes));
        }
    }
}

/// A module of a PTX text.
pub(crate) fn load(call: &Call, image: In<c_char>, log: Log) -> Answer<usize> {
    let (mut state, device) = context::enter(call)?;
    state.forbid_while_capturing()?;
    // As many bytes as there are for sure, one after the other: a text may be a single null.
    let mut first = Vec::new();
    while first.len() < 4 && first.last() != Some(&0) {
        first.push(image.get_at(first.len())?.cast_unsigned());
    }
    image::must_be_text(&first).inspect_err(|_| log.say("a binary without PTX; the fake driver interprets PTX"))?;
    let text = image.text()?;
    let (version, target) = image::head(&text);
    image::must_suit(&call.driver.options, version, target)
        .inspect_err(|_| log.say(&format!("PTX {version:?} for {target} suits neither this driver nor this device")))?;
    let parsed = purlin_ptx::Module::parse(&text);
    let ptx = parsed.map_err(|refusal| {
        log.say(&refusal.to_string());
        Code::INVALID_PTX
    })?;
    let globals = state.place_globals(call, device, &ptx)?;
    let handle = call.driver.new_handle();
    let made = state.detector.host_stamp(call.entry.name(), thread::label());
    let module = Module { device, made, ptx: Arc::new(ptx), globals: Arc::new(globals), functions: HashMap::new() };
    state.modules.insert(handle, module);
    Ok(handle)
}

impl State {
    /// Memory for the variables, with what they begin with.
    fn place_globals(&mut self, call: &Call, device: usize, ptx: &purlin_ptx::Module) -> Answer<Globals> {
        let mut globals = Globals::new();
        for global in ptx.globals() {
            let stamp = self.detector.host_stamp(call.entry.name(), thread::label());
            let size = global.size().max(1) as u64;
            let placed = self.memory.allocate(device, size, Kind::Global, Arc::clone(&stamp));
            let Ok(address) = placed else {
                self.free_globals(call, &globals);
                return Err(Code::OUT_OF_MEMORY);
            };
            globals.insert(global.name().to_owned(), (address, global.size()));
            let mut initial = global.initial().to_vec();
            initial.resize(global.size(), 0);
            let block = self.memory.live(address)?.clone();
            block.bytes.write(0, &initial);
            let access = Access { span: Span::new(address, size), writes: true, must_be_written: false };
            self.detector.access(access, &stamp, &block.life);
        }
        Ok(globals)
    }

    fn free_globals(&mut self, call: &Call, globals: &Globals) {
        for (address, _) in globals.values() {
            let freed = self.detector.host_stamp(call.entry.name(), thread::label());
            if let Ok(block) = self.memory.free(*address, Arc::clone(&freed)) {
                self.detector.freed(block.life.span, &freed);
                block.bytes.free();
                self.memory.bury(*address);
            }
        }
    }

    /// The function; INVALID_HANDLE without one. Its device is in order.
    pub(crate) fn function(&mut self, call: &Call, handle: usize) -> Answer<&mut Function> {
        let device = self.functions.get(&handle).ok_or(Code::INVALID_HANDLE)?.device;
        self.is_alive(device)?;
        call.driver.works(device)?;
        self.functions.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }
}

/// The module's functions and variables go with it, also if its device is broken. A launch that is queued has what it
/// needs of the code.
pub(crate) fn unload(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let module = state.modules.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
    module.functions.values().for_each(|function| _ = state.functions.remove(function));
    state.free_globals(call, &module.globals);
    call.driver.works(module.device)
}

/// The handle of a kernel: the same one each time.
pub(crate) fn function(call: &Call, module: usize, name: &str) -> Answer<usize> {
    let mut state = call.driver.state.lock();
    let found = state.modules.get_mut(&module).ok_or(Code::INVALID_HANDLE)?;
    call.driver.works(found.device)?;
    if let Some(function) = found.functions.get(name) {
        return Ok(*function);
    }
    found.ptx.kernel(name).ok_or(Code::NOT_FOUND)?;
    let handle = call.driver.new_handle();
    found.functions.insert(name.to_owned(), handle);
    let (device, ptx, globals) = (found.device, Arc::clone(&found.ptx), Arc::clone(&found.globals));
    let made = Arc::clone(&found.made);
    let function = Function { device, made, ptx, globals, name: Arc::from(name), most_dynamic_bytes: None };
    state.functions.insert(handle, function);
    Ok(handle)
}

/// Where a variable is, and its size.
pub(crate) fn global(call: &Call, module: usize, name: &str) -> Answer<(u64, usize)> {
    let state = call.driver.state.lock();
    let found = state.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
    call.driver.works(found.device)?;
    let (address, size) = found.globals.get(name).copied().ok_or(Code::NOT_FOUND)?;
    match state.memory.find(Span::new(address, 1)) {
        Found::Inside(_) => Ok((address, size)),
        Found::Beyond(_) | Found::Nothing => Err(Code::NOT_FOUND),
    }
}
