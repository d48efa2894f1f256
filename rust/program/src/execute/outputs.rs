//! The results of a run.

use std::ops::Index;

use smallvec::SmallVec;

use purlin_device::Buffer;

/// The results of a run, in the order of the signature: a list that allocates nothing for up to four.
///
/// ```
/// # use purlin::program::Outputs;
/// # use purlin::Buffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
/// let outputs: Outputs = [Buffer::from_slice(&[1_i32], &[1], &space)?].into_iter().collect();
/// assert_eq!((outputs.len(), outputs[0].to_vec::<i32>()?), (1, vec![1]));
/// let buffers: Vec<Buffer> = outputs.into_iter().collect();
/// # assert_eq!(buffers.len(), 1);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Outputs(SmallVec<[Buffer; 4]>);

impl Outputs {
    /// The number of results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All results.
    #[must_use]
    pub fn as_slice(&self) -> &[Buffer] {
        &self.0
    }

    /// An iterator over the buffers, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Buffer> {
        self.0.iter()
    }
}

/// Panics if there is no result of that number.
impl Index<usize> for Outputs {
    type Output = Buffer;

    fn index(&self, number: usize) -> &Buffer {
        &self.0[number]
    }
}

impl FromIterator<Buffer> for Outputs {
    fn from_iter<I: IntoIterator<Item = Buffer>>(buffers: I) -> Self {
        Self(buffers.into_iter().collect())
    }
}

/// The buffers of [`Outputs`], one after the other.
#[derive(Debug)]
pub struct OutputsIntoIter(smallvec::IntoIter<[Buffer; 4]>);

impl Iterator for OutputsIntoIter {
    type Item = Buffer;

    fn next(&mut self) -> Option<Buffer> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for OutputsIntoIter {}

impl IntoIterator for Outputs {
    type Item = Buffer;
    type IntoIter = OutputsIntoIter;

    fn into_iter(self) -> OutputsIntoIter {
        OutputsIntoIter(self.0.into_iter())
    }
}
