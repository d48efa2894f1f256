//! A program as Purlin runs it: the compiler's own code, read from its serialized form.

use purlin_base::stderr::tell;
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_device::Device;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{ExecutableNumPartitionsArgs, ExecutableSerializeArgs, LoadedExecutableAddressableDevicesArgs};
use purlin_program::{Executable, LoadedExecutable};
use purlin_xla_cpu::{LoadOptions, donated_parameters, load_program};

use super::{Compiled, policy};
use crate::handle::lent;
use crate::options::Mode;
use crate::{ffi, read};

/// See the module.
pub(super) struct Native {
    pub(super) loaded: LoadedExecutable,
    /// For runs on one device of the caller's choice.
    portable: Mutex<Vec<(i32, LoadedExecutable)>>,
}

impl Native {
    /// Whether it calls back into Python. Such a call may have effects, so a run must not happen twice.
    pub(super) fn calls_python(&self) -> bool {
        let calls = &self.loaded.executable().program().summary().library_calls;
        calls.keys().any(|name| name.contains("python") && name.contains("callback"))
    }

    /// The same program for that device alone.
    ///
    /// # Errors
    /// As [`LoadedExecutable::new`].
    pub(super) fn on(&self, device: &Device) -> StatusOr<LoadedExecutable> {
        let known = self.portable.lock().iter().find(|(id, _)| *id == device.id()).map(|(_, loaded)| loaded.clone());
        if let Some(loaded) = known {
            return Ok(loaded);
        }
        let loaded = LoadedExecutable::new(self.loaded.executable(), std::slice::from_ref(device), 1)?;
        self.portable.lock().push((device.id(), loaded.clone()));
        Ok(loaded)
    }
}

/// Reads what is donated, and loads the program unless the mode says that it is not wanted.
///
/// # Errors
/// What the compiler says; in the mode `native`, why Purlin cannot run it.
pub(super) fn load(compiled: &mut Compiled, serialized: Option<&[u8]>) -> Result<(), Error> {
    let (native, donated) = match serialized {
        Some(bytes) => read_program(compiled, bytes)?,
        None => read_program(compiled, Serialized::of(compiled)?.bytes())?,
    };
    if let (Mode::Native, Err(error)) = (compiled.platform.mode, &native) {
        return Err(Error::new(
            error.code(),
            format!("the mode is 'native', and Purlin cannot run it: {}", error.message()),
        ));
    }
    (compiled.native, compiled.donated) = (native, donated);
    explain(compiled);
    Ok(())
}

/// With `PURLIN_PJRT_EXPLAIN=1`, says on stderr where the program runs, and why.
fn explain(compiled: &Compiled) {
    if std::env::var_os("PURLIN_PJRT_EXPLAIN").is_none_or(|value| value != "1") {
        return;
    }
    let told = match &compiled.native {
        Ok(native) => {
            // Library calls by their names.
            let summary = native.loaded.executable().program().summary();
            let commands = summary.command_counts.iter().filter(|(kind, _)| **kind != "library");
            let commands = commands.map(|(kind, count)| format!("{count} {kind}"));
            let calls = summary.library_calls.iter().map(|(name, work)| format!("{} {name}", work.count));
            format!("runs on Purlin: {}", commands.chain(calls).collect::<Vec<_>>().join(", "))
        }
        Err(why) => format!("runs on the plugin that compiles: {}", why.message()),
    };
    tell(&format!("purlin: program '{}' {told}\n", compiled.name()));
}

/// The program, or why it cannot run here, and its donated parameters.
fn read_program(compiled: &Compiled, bytes: &[u8]) -> StatusOr<(StatusOr<Native>, Vec<usize>)> {
    let mut donated = donated_parameters(bytes)?;
    donated.sort_unstable();
    let native = match compiled.platform.mode {
        Mode::Delegate => Err(Error::unimplemented("the mode is 'delegate'")),
        _ => bound(compiled, bytes),
    };
    let native = native.and_then(|native| {
        let summary = native.loaded.executable().program().summary();
        match policy::why_delegate(summary).filter(|_| compiled.platform.mode == Mode::Auto) {
            Some(why) => Err(Error::unimplemented(why)),
            None => Ok(native),
        }
    });
    Ok((native, donated))
}

fn bound(compiled: &Compiled, bytes: &[u8]) -> StatusOr<Native> {
    // The caller of the plugin has chosen the compiler, and the bytes have not left the process.
    let options = LoadOptions { trust_code: true, handlers: ffi::handlers(), ..Default::default() };
    let program = load_program(bytes, &options)?;
    let mut partitions = ExecutableNumPartitionsArgs { executable: compiled.executable, ..arguments() };
    // SAFETY: the executable is alive.
    unsafe { compiled.compiler.plugin.call(&mut partitions) }?;
    let mut devices = Vec::new();
    for &device in &compiled.devices {
        // SAFETY: of the client's platform, which the program keeps.
        devices.push(unsafe { lent::<LoadedExecutableAddressableDevicesArgs, _>(device) }?.device.clone());
    }
    let loaded = LoadedExecutable::new(&Executable::new(program), &devices, partitions.num_partitions)?;
    Ok(Native { loaded, portable: Mutex::new(Vec::new()) })
}

/// The bytes of `PJRT_Executable_Serialize`.
struct Serialized(ExecutableSerializeArgs);

impl Serialized {
    fn of(compiled: &Compiled) -> StatusOr<Self> {
        let mut args = ExecutableSerializeArgs { executable: compiled.executable, ..arguments() };
        // SAFETY: the executable is alive.
        unsafe { compiled.compiler.plugin.call(&mut args) }?;
        Ok(Self(args))
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: lent until the deleter is called.
        unsafe { read::list("a serialized program", self.0.serialized_bytes.cast(), self.0.serialized_bytes_size) }
            .unwrap_or_default()
    }
}

impl Drop for Serialized {
    fn drop(&mut self) {
        if let Some(deleter) = self.0.serialized_executable_deleter {
            // SAFETY: ours, and ends here.
            unsafe { deleter(self.0.serialized_executable) };
        }
    }
}
