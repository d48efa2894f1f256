//! The driver's memory as a kernel sees it: each access is checked, and noted.

use std::cell::RefCell;
use std::sync::Arc;

use purlin_ptx::Fault;

use super::touched::Touched;
use crate::detector::report::Kind as Report;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::driver::Driver;
use crate::memory::bytes::Bytes;
use crate::memory::{Found, Kind};
use crate::state::State;

/// Blocks that a kernel used last, so that not every access asks the driver.
const REMEMBERED: usize = 8;

/// An access that memory refuses.
pub(crate) struct Refused {
    pub(crate) kind: Report,
    pub(crate) span: Span,
    /// What made or freed the block, and where that is.
    pub(crate) beside: Option<(Arc<Stamp>, Span)>,
    pub(crate) why: String,
}

/// See the module. Used by one thread.
pub(crate) struct Seen<'a> {
    driver: &'a Driver,
    device: usize,
    stamp: &'a Arc<Stamp>,
    blocks: RefCell<Vec<(Span, Arc<Bytes>)>>,
    touched: RefCell<Touched>,
    refused: RefCell<Option<Refused>>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(driver: &'a Driver, device: usize, stamp: &'a Arc<Stamp>) -> Self {
        let (blocks, touched, refused) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { driver, device, stamp, blocks, touched, refused }
    }

    /// What was touched, and what was refused.
    pub(crate) fn end(self) -> (Touched, Option<Refused>) {
        (self.touched.into_inner(), self.refused.into_inner())
    }

    /// The bytes of a range, from which offset on.
    fn find(&self, address: u64, size: usize, writes: bool) -> Result<(Arc<Bytes>, u64), Fault> {
        let span = Span::new(address, size as u64);
        let is_inside = |block: &Span| block.start <= span.start && span.end <= block.end;
        let mut blocks = self.blocks.borrow_mut();
        if let Some((block, bytes)) = blocks.iter().find(|(block, _)| is_inside(block)) {
            return Ok((Arc::clone(bytes), address - block.start));
        }
        match self.ask(&mut self.driver.state.lock(), span) {
            Ok((block, bytes)) => {
                if blocks.len() == REMEMBERED {
                    blocks.remove(0);
                }
                blocks.push((block, Arc::clone(&bytes)));
                Ok((bytes, address - block.start))
            }
            Err(mut refused) => {
                let does = if writes { "writes" } else { "reads" };
                refused.why = format!("the kernel {does} {}", refused.why);
                let fault = Fault(refused.why.clone());
                *self.refused.borrow_mut() = Some(refused);
                Err(fault)
            }
        }
    }

    fn ask(&self, state: &mut State, span: Span) -> Result<(Span, Arc<Bytes>), Refused> {
        let refuse = |kind, beside, why: String| Err(Refused { kind, span, beside, why });
        let block = match state.memory.find(span) {
            Found::Inside(block) => block,
            Found::Beyond(block) => {
                let why = format!("past a block of {} bytes at {:#x}", block.size_bytes(), block.life.span.start);
                return refuse(Report::OutOfBounds, Some((Arc::clone(&block.life.made), block.life.span)), why);
            }
            Found::Nothing => return refuse(Report::WildAddress, None, "where no block is".to_owned()),
        };
        if let Some(freed) = block.life.freed.as_ref().filter(|freed| freed.is_before(self.stamp)) {
            let freed = (Arc::clone(freed), block.life.span);
            return refuse(Report::UseOfFreed, Some(freed), "a block that was freed before".to_owned());
        }
        let is_allowed = match block.kind {
            Kind::Pinned | Kind::Registered => true,
            Kind::Pooled(pool) => {
                let has = |pool: &crate::memory::pool::Pool| pool.access.get(&self.device) == Some(&true);
                block.device == self.device || state.memory.pools.get(&pool).is_some_and(has)
            }
            Kind::Plain | Kind::Global => state.may_use(self.device, block.device),
        };
        if is_allowed {
            return Ok((block.life.span, Arc::clone(&block.bytes)));
        }
        let why = format!("on device {} memory of device {}, to which it has no access", self.device, block.device);
        refuse(Report::StrangersContext, Some((Arc::clone(&block.life.made), block.life.span)), why)
    }
}

impl purlin_ptx::Memory for Seen<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        let (bytes, offset) = self.find(address, into.len(), false)?;
        bytes.read(offset, into);
        self.touched.borrow_mut().read(Span::new(address, into.len() as u64));
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let (bytes, offset) = self.find(address, from.len(), true)?;
        bytes.write(offset, from);
        self.touched.borrow_mut().write(Span::new(address, from.len() as u64));
        Ok(())
    }

    fn update(&self, address: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault> {
        let (bytes, offset) = self.find(address, len, true)?;
        bytes.update(offset, len, f);
        let mut touched = self.touched.borrow_mut();
        touched.read(Span::new(address, len as u64));
        touched.write(Span::new(address, len as u64));
        Ok(())
    }
}
