//! Types of the user's, and objects of these types: the states of handlers.
//!
//! Type ids belong to the process, as in XLA: a handler's library holds one in a static variable. Ids that Purlin
//! chooses are large, so that an XLA in the same process chooses others.

#![allow(unsafe_code, reason = "objects are the user's, by address")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;

use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr, panics};

use super::abi::Deleter;

/// The first id that is chosen here.
const FIRST: i64 = 1 << 40;

static TYPES: Mutex<Types> = Mutex::new(Types { ids: BTreeMap::new(), deleters: BTreeMap::new() });

struct Types {
    ids: BTreeMap<Vec<u8>, i64>,
    deleters: BTreeMap<i64, Option<Deleter>>,
}

/// Registers a type under an id; 0 means that one is chosen, or that of an earlier registration under this name.
///
/// # Errors
/// `InvalidArgument`: the id is negative, or the name has another id. `AlreadyExists`: the id has another name, or the
/// name has another deleter.
pub(crate) fn register_type(name: &[u8], id: i64, deleter: Option<Deleter>) -> StatusOr<i64> {
    let mut types = TYPES.lock();
    let shown = || name.escape_ascii();
    if id < 0 {
        return Err(Error::invalid_argument(format!("type '{}' cannot have the id {id}", shown())));
    }
    if let Some(&known) = types.ids.get(name) {
        if id != 0 && id != known {
            let why = format!("type '{}' has the id {known}, and cannot get {id}", shown());
            return Err(Error::invalid_argument(why));
        }
        let address = |deleter: Option<Deleter>| deleter.map(|deleter| deleter as usize);
        if address(types.deleters[&known]) != address(deleter) {
            return Err(Error::already_exists(format!("type '{}' is registered with another deleter", shown())));
        }
        return Ok(known);
    }
    if types.deleters.contains_key(&id) {
        return Err(Error::already_exists(format!("type '{}': the id {id} is that of another type", shown())));
    }
    let free = types.deleters.last_key_value().map_or(FIRST, |(&last, _)| last.saturating_add(1).max(FIRST));
    let id = if id == 0 { free } else { id };
    types.ids.insert(name.to_vec(), id);
    types.deleters.insert(id, deleter);
    Ok(id)
}

/// An object of a handler, which is deleted with this.
struct State {
    id: i64,
    object: *mut c_void,
    deleter: Option<Deleter>,
}

// SAFETY: XLA's FFI lets any thread use and delete a state, and the caller of FfiHandlers::register() promises that the
// handlers know it.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        let Some(deleter) = self.deleter else { return };
        // SAFETY: the object is of the type that was registered with this deleter, and is deleted once, here.
        panics::reported(|| "the deleter of an XLA FFI state", || unsafe { deleter(self.object) });
    }
}

/// The place of the state of one stage.
#[derive(Default)]
pub(crate) struct StateSlot(Mutex<Option<State>>);

impl StateSlot {
    /// Takes the object.
    ///
    /// # Errors
    /// `InvalidArgument`: the type is not registered. `AlreadyExists`: there is a state. The object is then the
    /// caller's.
    pub(crate) fn set(&self, id: i64, object: *mut c_void) -> Result<(), Error> {
        let Some(deleter) = TYPES.lock().deleters.get(&id).copied() else {
            return Err(Error::invalid_argument(format!("a state of type {id}, which is not registered")));
        };
        let mut slot = self.0.lock();
        if let Some(State { id: known, .. }) = &*slot {
            return Err(Error::already_exists(format!("a state of type {id}, and there is one of type {known}")));
        }
        *slot = Some(State { id, object, deleter });
        Ok(())
    }

    /// The object, which lives as long as this.
    ///
    /// # Errors
    /// `NotFound`: there is none. `InvalidArgument`: it is of another type.
    pub(crate) fn get(&self, id: i64) -> StatusOr<*mut c_void> {
        match &*self.0.lock() {
            None => Err(Error::not_found(format!("there is no state, and one of type {id} is asked for"))),
            Some(state) if state.id != id => {
                Err(Error::invalid_argument(format!("the state is of type {}, and not {id}", state.id)))
            }
            Some(state) => Ok(state.object),
        }
    }
}

impl fmt::Debug for StateSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateSlot({:?})", self.0.lock().as_ref().map(|state| state.id))
    }
}
