//! Prints the Rust messages of `../capture.proto`. Run by proto.sh.

use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("capture-messages-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let files = protox::compile(["capture.proto"], [".."])?;
    let generated = prost_build::Config::new()
        .out_dir(&folder)
        .compile_fds(files);
    let text = generated.and_then(|()| fs::read_to_string(folder.join("systemscope.capture.rs")));
    fs::remove_dir_all(&folder)?;
    print!("{}", text?);
    Ok(())
}
