package mvcc

import (
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// authorLookup finds the authors of versions.
type authorLookup struct {
	rows engine.Iterator // over all changes
	walk *walk
	key  []byte
}

// authorOverhead is the memory of an author.
const authorOverhead = 48 + kv.MostAuthorUser

// lookAuthors begins to look for authors; the caller closes what it returns.
func (s *Store) lookAuthors(walk *walk) (*authorLookup, error) {
	rows, err := s.engine.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		return nil, fmt.Errorf("mvcc: look for authors: %w", err)
	}
	return &authorLookup{rows: rows, walk: walk}, nil
}

func (l *authorLookup) close() error {
	if l == nil {
		return nil
	}
	return l.rows.Close()
}

// of returns the author of the change at a position; nil: it is not known, since a build of feature level 1 wrote the change,
// the store was filled from a file, or a compaction has deleted the change.
func (l *authorLookup) of(at kv.Rev) (*kv.Author, error) {
	l.key = appendChangeKey(l.key[:0], at)
	valid := l.rows.SeekGE(l.key)
	if err := l.rows.Error(); err != nil || !valid {
		return nil, err
	}
	row := l.rows.Value()
	if err := l.rows.Error(); err != nil {
		return nil, err
	}
	if err := l.walk.over(len(row)); err != nil {
		return nil, err
	}
	last, ok := decodeChangeKey(l.rows.Key())
	if !ok {
		return nil, fmt.Errorf("%w: change key %x", ErrCorruptRow, l.rows.Key())
	}
	pack, ok := openPack(row, last)
	for ok && !pack.exhausted() {
		if _, ok = pack.next(); !ok || pack.at == at || later(pack.at, at) {
			break
		}
	}
	if !ok {
		return nil, fmt.Errorf("%w: changes up to revision %d", ErrCorruptRow, last.Main)
	}
	if by := pack.authors.current(); pack.at == at && len(by) > 0 {
		author := decodeAuthor(by)
		return &author, nil
	}
	return nil, nil
}
