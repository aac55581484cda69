package apply

import (
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
)

// leaseRows writes the rows of leases into the batch under way. lease.Rows remembers what of them the batch has changed.
type leaseRows struct{ w *mvcc.Writer }

// Set implements lease.Table.
func (r leaseRows) Set(key, value []byte) { r.w.SetUnread(key, value) }

// DeleteRaw implements lease.Table.
func (r leaseRows) DeleteRaw(key []byte) { r.w.DeleteUnread(key) }

// committedRows implements lease.Reader.
type committedRows struct{ engine engine.Engine }

// Scan implements lease.Reader.
func (r committedRows) Scan(lower, upper []byte, visit func(key []byte) bool) error {
	return scanRange(r.engine, lower, upper, func(key, _ []byte) (more bool, err error) { return visit(key), nil })
}

// Has implements lease.Reader.
func (r committedRows) Has(key []byte) (bool, error) {
	_, found, err := r.engine.Get(key)
	return found, err
}
