//! Where a run finds each allocation: worked out once, so that a run only adds.

use crate::allocation::{ALIGNMENT_BYTES, Allocation, AllocationKind};
use purlin_base::{Error, StatusOr};

/// Where a run finds one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationPlace {
    /// At that argument's address; if it is a result's too, at the result's.
    Argument(u32),
    /// At that result's address.
    Result(u32),
    /// In the constant itself.
    Constant,
    /// So many bytes behind the address of the block of temporaries.
    Temporary(usize),
    /// Nowhere.
    Nowhere,
}

/// Where a run finds the allocations of a program.
#[derive(Debug)]
pub(crate) struct Places {
    /// By number of the allocation.
    pub(crate) places: Vec<AllocationPlace>,
    /// By number of the parameter: whether a command can see it, and the result that has its memory.
    pub(crate) parameters: Vec<ParameterPlace>,
    /// By number of the result: the parameter whose memory it has.
    pub(crate) results: Vec<Option<u32>>,
    /// Bytes of the one block for all temporaries of a run.
    pub(crate) temporary_bytes: usize,
}

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParameterPlace {
    /// Whether it has an allocation, with bytes.
    pub(crate) is_used: bool,
    /// The result that has its memory.
    pub(crate) result: Option<u32>,
}

impl Places {
    /// Of allocations that are valid, for so many parameters and results.
    ///
    /// # Errors
    /// `InvalidArgument`: temporaries of more bytes than an address counts.
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

    /// Room for a temporary, behind those that are there.
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
