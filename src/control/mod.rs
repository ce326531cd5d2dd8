//! Floor 4: the one way to change what exists.
