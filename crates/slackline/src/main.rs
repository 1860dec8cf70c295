//! The command's process; all of it is in the library beside this.

fn main() -> std::process::ExitCode {
    command::main()
}
