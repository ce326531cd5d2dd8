//! Floor 6: the composition root.
