//! Benchmarks of the libraries, in `benches/`. They have their own package, so that `make test`
//! does not compile criterion.
