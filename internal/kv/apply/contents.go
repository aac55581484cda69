package apply

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Contents is a hash of all that members with the same state have in common: keys with their history, leases, users, rules,
// sessions, jobs, the configuration, the chain, and the row of the backup. It leaves out whose store it is, the results of
// proposals, of which members keep different ones, and the progress of compactions. Two machines that have applied the same
// entries have the same contents.
//
// Nothing may be applied meanwhile. It reads the whole store; rest is called now and then, and its error ends the walk.
func (m *Machine) Contents(rest func() error) (sum [sha256.Size]byte, err error) {
	digest := sha256.New()
	if err := m.store.WriteContents(digest, rest); err != nil {
		return sum, err
	}
	for _, table := range []byte{tableState, tableLease} {
		if err := m.writeTable(digest, table, rest); err != nil {
			return sum, fmt.Errorf("apply: contents: %w", err)
		}
	}
	digest.Sum(sum[:0])
	return sum, nil
}

// restRows is how many rows of a table are read between two calls of rest.
const restRows = 1024

// writeTable writes the rows of a table, each key and value with its length.
func (m *Machine) writeTable(w io.Writer, table byte, rest func() error) (err error) {
	it, err := m.engine.NewIter([]byte{table}, []byte{table + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	var head []byte
	rows := 0
	for valid := it.First(); valid; valid = it.Next() {
		if rows++; rows%restRows == 0 {
			if err := rest(); err != nil {
				return err
			}
		}
		head = binary.AppendUvarint(head[:0], uint64(len(it.Key())))
		head = append(binary.AppendUvarint(head, uint64(len(it.Value()))), it.Key()...)
		if _, err := w.Write(head); err != nil {
			return err
		}
		if _, err := w.Write(it.Value()); err != nil {
			return err
		}
	}
	return nil
}
