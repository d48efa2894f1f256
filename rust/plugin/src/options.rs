//! The options of a client, by the names that `PJRT_Client_Create` takes.

use purlin_base::{Error, StatusOr};
use purlin_device::ClientOptions;
use purlin_pjrt_abi::{NamedValue, named_value_type};

use crate::read;

/// The names, with what each says.
pub(crate) const NAMES: [(&str, &str); 8] = [
    ("device_count", "virtual devices, 1..=1024; 1 without it"),
    ("cpu_device_count", "the same, as XLA's plugin has it"),
    ("worker_count", "threads of the runner, 0..=4096; 0: what the machine allows"),
    ("memory_limit_bytes", "the most that each memory of a device takes from the system; 0: no limit"),
    ("compiler", "path of the plugin that compiles; else PURLIN_PJRT_COMPILER, else lammps-jax-pjrt-cpu's"),
    ("mode", "auto, native, delegate or check; else PURLIN_PJRT_MODE, else auto"),
    ("check_frozen_memory", "whether memory that is to stay as it is is summed up before and after"),
    (
        "stalls_on_sigquit",
        "whether SIGQUIT prints what is pending and what waits for it, instead of ending the process",
    ),
];

/// Where programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// On Purlin, where it can.
    #[default]
    Auto,
    /// On Purlin; what it cannot run is refused.
    Native,
    /// On the plugin that compiles.
    Delegate,
    /// On both, and the results are compared.
    Check,
}

impl Mode {
    fn named(name: &str) -> StatusOr<Self> {
        Ok(match name {
            "auto" => Self::Auto,
            "native" => Self::Native,
            "delegate" => Self::Delegate,
            "check" => Self::Check,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "the mode is '{name}'; it must be auto, native, delegate or check"
                )));
            }
        })
    }
}

/// What a client is made with.
#[derive(Debug, Default)]
pub(crate) struct PluginOptions {
    pub(crate) client: ClientOptions,
    pub(crate) compiler: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) stalls_on_sigquit: bool,
}

impl PluginOptions {
    /// # Errors
    /// `InvalidArgument`: a name that is none of [`NAMES`], or a value of another type or out of range.
    ///
    /// # Safety
    /// The values are what their types say.
    pub(crate) unsafe fn read(values: &[NamedValue]) -> StatusOr<Self> {
        let mut options = Self::default();
        options.client.process_index = Some(0);
        if let Some(mode) = std::env::var("PURLIN_PJRT_MODE").ok().filter(|mode| !mode.is_empty()) {
            options.mode = Mode::named(&mode)?;
        }
        for value in values {
            // SAFETY: the caller's promise.
            unsafe {
                let name = read::text("the name of an option", value.name, value.name_size)?;
                match name {
                    "device_count" | "cpu_device_count" => options.client.device_count = number(name, value)?,
                    "worker_count" => options.client.worker_count = number(name, value)?,
                    "memory_limit_bytes" => options.client.memory_limit_bytes = number(name, value)?,
                    "compiler" => options.compiler = Some(text(name, value)?.to_owned()),
                    "mode" => options.mode = Mode::named(text(name, value)?)?,
                    "check_frozen_memory" => options.client.check_frozen_memory = answer(name, value)?,
                    "stalls_on_sigquit" => options.stalls_on_sigquit = answer(name, value)?,
                    _ => {
                        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                        return Err(Error::invalid_argument(format!(
                            "there is no option '{name}'; there are {}",
                            known.join(", ")
                        )));
                    }
                }
            }
        }
        Ok(options)
    }
}

fn wrong(name: &str, wanted: &str, value: &NamedValue) -> Error {
    Error::invalid_argument(format!(
        "the option '{name}' is a value of PJRT_NamedValue_Type {}, not {wanted}",
        value.r#type
    ))
}

unsafe fn number(name: &str, value: &NamedValue) -> StatusOr<usize> {
    if value.r#type != named_value_type::INT64 {
        return Err(wrong(name, "a number", value));
    }
    // SAFETY: the type says which member it is.
    let number = unsafe { value.value.int64_value };
    usize::try_from(number)
        .map_err(|_| Error::invalid_argument(format!("the option '{name}' is {number}; it must not be negative")))
}

unsafe fn text<'a>(name: &str, value: &'a NamedValue) -> StatusOr<&'a str> {
    if value.r#type != named_value_type::STRING {
        return Err(wrong(name, "a text", value));
    }
    // SAFETY: the type says which member it is; the caller's promise.
    unsafe { read::text(name, value.value.string_value, value.value_size) }
}

unsafe fn answer(name: &str, value: &NamedValue) -> StatusOr<bool> {
    if value.r#type != named_value_type::BOOL {
        return Err(wrong(name, "a bool", value));
    }
    // SAFETY: the type says which member it is.
    Ok(unsafe { value.value.bool_value } != 0)
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn the_page_for_users_lists_every_option() {
        let page = std::fs::read_to_string("../../docs/jax.md").unwrap();
        let rows: Vec<_> =
            page.lines().filter(|line| line.starts_with("| `") && line.matches(" | ").count() == 2).collect();
        let said: Vec<_> = rows.iter().map(|row| row.split('`').nth(1).unwrap()).collect();
        assert_eq!(said, NAMES.map(|(name, _)| name));
        for (row, (name, meaning)) in rows.iter().zip(NAMES) {
            let plain = row.replace('`', "");
            assert!(plain.ends_with(&format!(" {meaning} |")), "{name}: {row}");
        }
    }
}
