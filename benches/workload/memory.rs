//! The memory that this process has used.

/// The most memory that it ever held, in MiB; not a number where the system does not say.
pub(crate) fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(f64::NAN, |kib: f64| kib / 1024.0)
}
