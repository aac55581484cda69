package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/kv"
)

// WriteContents writes, in one form, all that members with the same state have in common in this store: the numbers of the
// store, each version that a compaction does not delete, and each change from the compact revision on. It does not depend on
// how far a compaction has got, nor on how changes are packed into rows. Nothing may be applied meanwhile. rest is called now
// and then; its error ends the walk.
func (s *Store) WriteContents(w io.Writer, rest func() error) error {
	compact := s.CompactRevision()
	written, _, err := s.engine.Get(writtenRow)
	if err == nil {
		err = errors.Join(writePart(w, written), writePart(w, appendNumbers(nil, int64(compact))))
	}
	if err == nil {
		err = s.writeVersions(w, compact, rest)
	}
	if err == nil {
		err = s.writeChanges(w, compact, rest)
	}
	if err != nil {
		return fmt.Errorf("mvcc: contents: %w", err)
	}
	return nil
}

// writePart writes a part with its length, so that no two sequences of parts look alike.
func writePart(w io.Writer, part []byte) error {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	if _, err := w.Write(length[:]); err != nil {
		return err
	}
	_, err := w.Write(part)
	return err
}

// writeVersions writes what a read at the compact revision, or at a later one, can see.
func (s *Store) writeVersions(w io.Writer, compact kv.Revision, rest func() error) (err error) {
	it, err := s.engine.NewIter([]byte{tableVersions}, []byte{tableVersions + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	var prefix []byte
	decided := false // the newest version at or below the compact revision was seen
	rows := 0
	for valid := it.First(); valid; valid = it.Next() {
		if rows++; rows%lookEvery == 0 {
			if err := rest(); err != nil {
				return err
			}
		}
		own, rev, ok := splitVersionKey(it.Key())
		if !ok {
			return fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
		}
		if !bytes.Equal(own, prefix) {
			prefix, decided = append(prefix[:0], own...), false
		}
		if rev.Main <= compact {
			superseded := decided
			decided = true
			if superseded || isTombstone(it.Value()) {
				continue
			}
		}
		if err := errors.Join(writePart(w, it.Key()), writePart(w, it.Value())); err != nil {
			return err
		}
	}
	return nil
}

// writeChanges writes the changes from the compact revision on, which watches can be sent.
func (s *Store) writeChanges(w io.Writer, compact kv.Revision, rest func() error) (err error) {
	from := kv.Rev{Main: max(compact, 0)}
	it, err := s.engine.NewIter(changeBounds(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var row []byte
	rows := 0
	scan := newChangeScan(it, from, maxRev)
	for scan.next() {
		if rows++; rows%lookEvery == 0 {
			if err := rest(); err != nil {
				return err
			}
		}
		row = append(appendChangeKey(row[:0], scan.rev), scan.change.kind)
		if err := errors.Join(writePart(w, row), writePart(w, scan.change.by), writePart(w, scan.change.user)); err != nil {
			return err
		}
	}
	return scan.err
}
