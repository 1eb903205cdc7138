//! Generates the messages of `capture.proto`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=capture.proto");
    let files = protox::compile(["capture.proto"], ["."])?;
    prost_build::compile_fds(files)?;
    Ok(())
}
