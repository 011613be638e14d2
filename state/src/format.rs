//! Disk formats.
