//go:build cgo

package memory

// HeapHasAll says whether all memory of a member is the Go runtime's. With cgo the store allocates its caches and memtables by
// the C library.
const HeapHasAll = false
