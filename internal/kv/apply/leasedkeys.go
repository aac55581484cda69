package apply

import "github.com/quorate/quorate/internal/storage/engine"

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
