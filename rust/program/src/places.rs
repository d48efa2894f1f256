//! Where a run finds each allocation. It is computed once for each program, so that a run only adds offsets to
//! addresses.

use crate::allocation::{ALIGNMENT_BYTES, Allocation, AllocationKind};
use purlin_base::{Error, StatusOr};

/// Where a run finds one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationPlace {
    /// At the address of this argument. An argument that shares a result's memory is a `Result` instead.
    Argument(u32),
    /// At the address of this result.
    Result(u32),
    /// In the bytes of the constant.
    Constant,
    /// At this offset in the block of temporaries.
    Temporary(usize),
    /// No memory: the address is null.
    Nowhere,
}

/// Where a run finds the allocations of a program.
#[derive(Debug)]
pub(crate) struct Places {
    /// Indexed by allocation.
    pub(crate) places: Vec<AllocationPlace>,
    /// Indexed by parameter: whether commands can access it, and the result that shares its memory.
    pub(crate) parameters: Vec<ParameterPlace>,
    /// Indexed by result: the parameter whose memory it shares.
    pub(crate) results: Vec<Option<u32>>,
    /// The size of the one block for all temporaries of a run.
    pub(crate) temporary_bytes: usize,
}

/// How a run uses a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParameterPlace {
    /// Whether it has an allocation that is not empty.
    pub(crate) is_used: bool,
    /// The result that shares its memory.
    pub(crate) result: Option<u32>,
}

impl Places {
    /// The places of valid allocations, for this number of parameters and results.
    ///
    /// # Errors
    /// `InvalidArgument`: the temporaries have more bytes than an address counts.
    pub(crate) fn of(allocations: &[Allocation], parameters: usize, results: usize) -> StatusOr<Self> {
        let mut places = Self {
            places: Vec::with_capacity(allocations.len()),
            parameters: vec![ParameterPlace::default(); parameters],
            results: vec![None; results],
            temporary_bytes: 0,
        };
        for allocation in allocations {
            let place = match allocation.kind {
                AllocationKind::Parameter { number, result } => {
                    let result = result.map(|result| result as u32);
                    places.parameters[number] = ParameterPlace { is_used: allocation.size_bytes > 0, result };
                    if let Some(result) = result {
                        places.results[result as usize] = Some(number as u32);
                    }
                    result.map_or(AllocationPlace::Argument(number as u32), AllocationPlace::Result)
                }
                AllocationKind::Output { number } => AllocationPlace::Result(number as u32),
                AllocationKind::Constant(_) => AllocationPlace::Constant,
                AllocationKind::Temporary => AllocationPlace::Temporary(places.temporary(allocation.size_bytes)?),
                AllocationKind::ThreadLocal => AllocationPlace::Nowhere,
            };
            places.places.push(place);
        }
        Ok(places)
    }

    /// Reserves space for a temporary after those before it, and returns its offset. It fails as [`of`](Self::of).
    fn temporary(&mut self, size_bytes: usize) -> StatusOr<usize> {
        let offset_bytes = self.temporary_bytes;
        let end = offset_bytes.checked_add(size_bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT_BYTES));
        self.temporary_bytes = end.filter(|&end| isize::try_from(end).is_ok()).ok_or_else(|| {
            Error::invalid_argument(format!(
                "temporaries of {offset_bytes} and {size_bytes} bytes are more than an address counts"
            ))
        })?;
        Ok(offset_bytes)
    }
}
