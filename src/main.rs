//! The program: everything is in the library's `cli`.

/// Gives memory back soon after it is freed, in whatever sizes it was asked for.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    reactor::cli::run()
}
