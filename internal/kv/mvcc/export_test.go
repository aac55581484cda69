package mvcc

import (
	"errors"

	"github.com/quorate/quorate/internal/kv"
)

// KeyCount returns the number of keys that exist at the published revision.
func (s *Store) KeyCount() int64 { return s.state.Load().numbers.keys }

// ForgetReplaced removes the names of replaced versions from all changes, as in a store that was filled from a file.
func (s *Store) ForgetReplaced() error {
	eng := s.engine
	it, err := eng.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		return err
	}
	batch := eng.NewBatch()
	batch.DeleteRange(changeBounds(kv.Rev{}))
	scan := newChangeScan(it, kv.Rev{Main: max(s.compactor.done, 0)}, maxRev)
	if at := s.compactor.at; at != (kv.Rev{}) {
		scan.from = at // earlier changes are deleted, though their pack may exist
	}
	var p pack
	for scan.next() {
		bare := change{kind: scan.change.kind, user: scan.change.user}
		if !p.takes(&bare, scan.rev) {
			p.flush(batch)
		}
		p.add(&bare, scan.rev)
	}
	p.flush(batch)
	return errors.Join(scan.err, it.Close(), batch.Commit(), batch.Close())
}

// ChangeRows counts the rows that hold changes.
func (s *Store) ChangeRows() (rows int, err error) {
	it, err := s.engine.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		return 0, err
	}
	for valid := it.First(); valid; valid = it.Next() {
		rows++
	}
	return rows, errors.Join(it.Error(), it.Close())
}
