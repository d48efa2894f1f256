//! The bytes of one block. Device memory lies in chunks that exist once they are written, so that a block of any size
//! is cheap; a chunk that does not exist reads as a pattern. Each chunk has a lock, so copies that race do so between
//! chunks and never inside Rust's rules. Host memory is the program's own, at its address.

#![allow(unsafe_code, reason = "pinned memory is memory of the program, by address")]

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::Mutex;

/// What memory holds that was allocated and not written since.
pub(crate) const FRESH_BYTE: u8 = 0xCB;
/// What freed memory holds.
pub(crate) const FREED_BYTE: u8 = 0xDD;

const CHUNK_BYTES: usize = 1 << 16;

/// See the module.
pub(crate) struct Bytes {
    size_bytes: u64,
    kind: Kind,
    is_freed: AtomicBool,
}

enum Kind {
    Device(Vec<Mutex<Option<Box<[u8]>>>>),
    Host(Pages),
}

/// Memory of the process.
struct Pages {
    address: usize,
    /// It was mapped here, and goes with the last operation that uses it. `keeps_address`: nothing is ever mapped there
    /// again, so that a late use of the host faults.
    is_ours: bool,
    keeps_address: bool,
    size_bytes: usize,
    /// For accesses that read and write at once.
    lock: Mutex<()>,
}

/// Pages that fault when they are touched; `None` without address space for them.
pub(crate) fn reserve(size_bytes: u64) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new pages at an address of the system's choice touch nothing that exists.
    let pages = unsafe { libc::mmap(ptr::null_mut(), size_bytes.try_into().ok()?, libc::PROT_NONE, flags, -1, 0) };
    (pages != libc::MAP_FAILED).then_some(pages.addr())
}

impl Bytes {
    pub(crate) fn of_device(size_bytes: u64) -> Self {
        let chunks = size_bytes.div_ceil(CHUNK_BYTES as u64);
        let kind = Kind::Device((0..chunks).map(|_| Mutex::new(None)).collect());
        Self { size_bytes, kind, is_freed: AtomicBool::new(false) }
    }

    /// New pages of the process, filled with the pattern; `None` without memory for them.
    pub(crate) fn of_new_pages(size_bytes: u64, keeps_address: bool) -> Option<Self> {
        let size = usize::try_from(size_bytes).ok()?.checked_next_multiple_of(4096)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: as in `reserve`.
        let pages = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        if pages == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: these pages were just mapped, of that size, to be written.
        unsafe { pages.cast::<u8>().write_bytes(FRESH_BYTE, size) };
        let pages = Pages {
            address: pages.expose_provenance(),
            is_ours: true,
            keeps_address,
            size_bytes: size,
            lock: Mutex::new(()),
        };
        Some(Self { size_bytes, kind: Kind::Host(pages), is_freed: AtomicBool::new(false) })
    }

    /// Memory that the program keeps until it unregisters it.
    pub(crate) fn of_program(address: usize, size_bytes: u64) -> Option<Self> {
        let size = size_bytes.try_into().ok()?;
        let pages = Pages { address, is_ours: false, keeps_address: false, size_bytes: size, lock: Mutex::new(()) };
        Some(Self { size_bytes, kind: Kind::Host(pages), is_freed: AtomicBool::new(false) })
    }

    /// Where the host finds it; `None` for device memory.
    pub(crate) fn address(&self) -> Option<usize> {
        match &self.kind {
            Kind::Device(_) => None,
            Kind::Host(pages) => Some(pages.address),
        }
    }

    /// From now on it reads as the pattern of freed memory, and writes do nothing.
    pub(crate) fn free(&self) {
        // Release: pairs with the loads of `is_usable`.
        self.is_freed.store(true, Ordering::Release);
        if let Kind::Device(chunks) = &self.kind {
            chunks.iter().for_each(|chunk| *chunk.lock() = None);
        }
    }

    fn is_usable(&self, offset: u64, size: usize) -> bool {
        offset.checked_add(size as u64).is_some_and(|end| end <= self.size_bytes)
            && !self.is_freed.load(Ordering::Acquire)
    }

    /// Reads `out.len()` bytes; the pattern of freed memory where there are none.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        if !self.is_usable(offset, out.len()) {
            return out.fill(FREED_BYTE);
        }
        match &self.kind {
            Kind::Device(chunks) => pieces(offset, out.len(), |chunk, within, done, size| {
                let out = &mut out[done..done + size];
                match &*chunks[chunk].lock() {
                    Some(bytes) => out.copy_from_slice(&bytes[within..within + size]),
                    None => out.fill(FRESH_BYTE),
                }
            }),
            Kind::Host(pages) => read_host(pages.at(offset), out),
        }
    }

    /// Writes the bytes, if there is memory for all of them.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        if !self.is_usable(offset, bytes.len()) {
            return;
        }
        match &self.kind {
            Kind::Device(chunks) => pieces(offset, bytes.len(), |chunk, within, done, size| {
                let mut chunk = chunks[chunk].lock();
                // Freed since: the memory stays gone.
                if !self.is_freed.load(Ordering::Acquire) {
                    let chunk = chunk.get_or_insert_with(|| vec![FRESH_BYTE; CHUNK_BYTES].into_boxed_slice());
                    chunk[within..within + size].copy_from_slice(&bytes[done..done + size]);
                }
            }),
            Kind::Host(pages) => write_host(pages.at(offset), bytes),
        }
    }

    /// Reads and writes `size` bytes, which nothing else reads or writes in between. They lie in one chunk, as all
    /// aligned words do; otherwise they are read and written in two steps.
    pub(crate) fn update(&self, offset: u64, size: usize, change: &mut dyn FnMut(&mut [u8])) {
        let within = usize::try_from(offset % CHUNK_BYTES as u64).unwrap_or(0);
        match &self.kind {
            Kind::Device(chunks) if self.is_usable(offset, size) && within + size <= CHUNK_BYTES => {
                let chunk = usize::try_from(offset / CHUNK_BYTES as u64).unwrap_or(0);
                let mut chunk = chunks[chunk].lock();
                let chunk = chunk.get_or_insert_with(|| vec![FRESH_BYTE; CHUNK_BYTES].into_boxed_slice());
                change(&mut chunk[within..within + size]);
            }
            kind => {
                let _guard = if let Kind::Host(pages) = kind { Some(pages.lock.lock()) } else { None };
                let mut bytes = vec![0; size];
                self.read(offset, &mut bytes);
                change(&mut bytes);
                self.write(offset, &bytes);
            }
        }
    }
}

impl Pages {
    fn at(&self, offset: u64) -> usize {
        self.address + usize::try_from(offset).unwrap_or(0)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        let address = ptr::with_exposed_provenance_mut(self.address);
        if self.keeps_address {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
            // SAFETY: these pages are ours, by `of_new_pages`; the program freed them, and this was the last operation.
            unsafe { libc::mmap(address, self.size_bytes, libc::PROT_NONE, flags, -1, 0) };
        } else {
            // SAFETY: as above.
            unsafe { libc::munmap(address, self.size_bytes) };
        }
    }
}

/// Calls `piece(chunk, offset within, bytes done, size)` for each chunk that the range meets.
fn pieces(offset: u64, size: usize, mut piece: impl FnMut(usize, usize, usize, usize)) {
    let mut done = 0;
    while done < size {
        let at = offset + done as u64;
        // Both fit: a block's chunks are counted by usize.
        let (chunk, within) = ((at / CHUNK_BYTES as u64) as usize, (at % CHUNK_BYTES as u64) as usize);
        let part = (CHUNK_BYTES - within).min(size - done);
        piece(chunk, within, done, part);
        done += part;
    }
}

/// Reads memory of the program.
pub(crate) fn read_host(address: usize, out: &mut [u8]) {
    // SAFETY: CUDA's contract, kept by the program: pinned memory is there until it is freed or unregistered, and a
    // pageable source during the call, which is when it is read. `is_usable` keeps the range.
    unsafe { ptr::copy(ptr::with_exposed_provenance::<u8>(address), out.as_mut_ptr(), out.len()) };
}

/// Writes memory of the program.
pub(crate) fn write_host(address: usize, bytes: &[u8]) {
    // SAFETY: as in `read_host`; a pageable destination is written during the call, which waits for that.
    unsafe { ptr::copy(bytes.as_ptr(), ptr::with_exposed_provenance_mut::<u8>(address), bytes.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_memory_is_fresh_then_written_then_freed() {
        let bytes = Bytes::of_device(3 * CHUNK_BYTES as u64);
        let at = CHUNK_BYTES as u64 - 2;
        let read = |at, size| {
            let mut out = vec![0; size];
            bytes.read(at, &mut out);
            out
        };
        assert_eq!(read(at, 4), [FRESH_BYTE; 4]);
        bytes.write(at, &[1, 2, 3, 4]);
        assert_eq!(read(at - 1, 6), [FRESH_BYTE, 1, 2, 3, 4, FRESH_BYTE]);
        bytes.update(at, 2, &mut |word| word.reverse());
        bytes.update(at + 1, 2, &mut |word| word.reverse());
        assert_eq!(read(at, 4), [2, 3, 1, 4]);
        assert_eq!(read(3 * CHUNK_BYTES as u64 - 1, 2), [FREED_BYTE; 2], "past the end there is nothing");
        bytes.free();
        bytes.write(0, &[9]);
        assert_eq!(read(0, 1), [FREED_BYTE]);
    }

    #[test]
    fn host_memory_is_where_the_program_has_it() {
        let mut word = [1_u8, 2, 3, 4];
        let bytes = Bytes::of_program((&raw mut word).expose_provenance(), 4).expect("four bytes are no many");
        bytes.update(1, 2, &mut |pair| pair.reverse());
        assert_eq!(word, [1, 3, 2, 4]);
        assert!(Bytes::of_new_pages(10, false).is_some_and(|pages| pages.address().is_some()));
    }
}
