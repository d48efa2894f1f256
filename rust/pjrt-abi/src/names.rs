//! PJRT's names as Rust and Purlin's C header write them.

/// Of a type: `Error_GetCode_Args` is `ErrorGetCodeArgs`.
pub(crate) fn camel(name: &str) -> String {
    let parts = name.split('_').filter(|part| *part != "PJRT").map(|part| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_uppercase() + rest
    });
    parts.collect::<String>().replace("FunctionTable", "Table")
}

/// Of a slot or module: `Executable_NumOutputs` is `executable_num_outputs`.
pub(crate) fn snake(name: &str) -> String {
    let name = name.replace("PJRT_", "");
    let mut snake = String::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
        before = letter;
    }
    snake
}

/// Of a slot of an extension, which need not say the extension's name.
pub(crate) fn slot(extension: &str, name: &str) -> String {
    let own = name.strip_prefix(extension).and_then(|name| name.strip_prefix('_'));
    snake(own.unwrap_or(name))
}
