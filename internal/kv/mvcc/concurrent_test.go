package mvcc_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Each command writes the same number to all of some keys. Readers beside the writer, the compaction and flushes see,
// at every revision, all keys of the command of that revision or none, in ranges, single reads and events.
func TestStore_concurrent(t *testing.T) {
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			s := newStore(t, o)
			var stop atomic.Bool
			var all sync.WaitGroup
			run := func(work func() error) {
				all.Go(func() {
					if err := work(); err != nil {
						t.Error(err)
						stop.Store(true)
					}
				})
			}
			for i := range 3 {
				run(func() error { return readWhile(s, &stop, uint64(i)) })
			}
			run(func() error {
				for !stop.Load() {
					if _, err := s.CompactStep(20); err != nil {
						return err
					}
				}
				return nil
			})
			run(func() error {
				for !stop.Load() {
					if _, err := s.CountStep(); err != nil {
						return err
					}
				}
				return nil
			})
			run(func() error {
				defer stop.Store(true)
				return writeAll(s)
			})
			all.Wait()
			if stats := s.CountStats(); stats.Corrected > 0 || stats.Intervals < 3 {
				t.Errorf("counting while all else went on: %+v", stats)
			}
		})
	}
}

const sharedKeys = 8

func writeAll(s *mvcc.Store) error {
	rounds := 1500
	if testing.Short() {
		rounds = 300
	}
	for i := range rounds {
		w := s.Begin()
		for range 1 + i%3 {
			w.BeginCommand()
			number := binary.BigEndian.AppendUint64(nil, uint64(w.Revision()+1))
			for k := range sharedKeys {
				w.Put(fmt.Append(nil, "key", k), number, 0)
			}
			comeAndGo(w)
			w.EndCommand()
		}
		if i%50 == 49 {
			if err := w.Compact(w.Revision() - 20); err != nil {
				return err
			}
		}
		if err := w.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// comeAndGo puts one of the passing keys at each revision, and deletes an old one: there are as many as revisions, up to passing.
func comeAndGo(w *mvcc.Writer) {
	rev := w.Revision()
	w.Put(fmt.Append(nil, "passing", rev%(2*passing)), nil, 0)
	w.DeleteRange(fmt.Append(nil, "passing", (rev+passing)%(2*passing)), nil, nil)
}

const passing = 20

// readCount counts the passing keys, and those and the shared ones together.
func readCount(s *mvcc.Store, rev kv.Revision) error {
	want := min(int64(rev)-1, passing)
	for _, from := range []string{"passing", "key"} {
		op := &kv.RangeOp{Key: []byte(from), End: []byte("q"), Revision: rev, CountOnly: true}
		got, _, err := s.Range(op)
		if errors.Is(err, kv.ErrCompacted) || rev == 1 {
			return nil
		}
		if err != nil || got.Count != want {
			return fmt.Errorf("from %s at revision %d: %d keys, want %d, %w", from, rev, got.Count, want, err)
		}
		want += sharedKeys
	}
	return nil
}

func readWhile(s *mvcc.Store, stop *atomic.Bool, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 11))
	last := kv.Revision(0)
	for !stop.Load() {
		current := s.Revision()
		if current < last {
			return fmt.Errorf("revision %d after %d", current, last)
		}
		last = current
		rev := max(current-kv.Revision(r.Int64N(30)), 1)
		err := errors.Join(readRange(s, rev), readOne(s, rev, r), readEvents(s, rev), readCount(s, rev))
		if err != nil {
			return err
		}
	}
	return nil
}

func readRange(s *mvcc.Store, rev kv.Revision) error {
	got, _, err := s.Range(&kv.RangeOp{Key: []byte("key"), End: []byte("kez"), Revision: rev})
	if errors.Is(err, kv.ErrCompacted) || err == nil && rev == 1 {
		return nil
	}
	if err != nil {
		return err
	}
	if len(got.KVs) != sharedKeys {
		return fmt.Errorf("at revision %d: %d keys", rev, len(got.KVs))
	}
	for _, k := range got.KVs {
		if k.ModRevision != rev || binary.BigEndian.Uint64(k.Value) != uint64(rev) {
			return fmt.Errorf("at revision %d: %+v", rev, k)
		}
	}
	return nil
}

func readOne(s *mvcc.Store, rev kv.Revision, r *rand.Rand) error {
	op := &kv.RangeOp{Key: fmt.Append(nil, "key", r.IntN(sharedKeys))}
	got, current, err := s.Range(op)
	if err == nil && current > 1 && (len(got.KVs) != 1 || got.KVs[0].ModRevision != current) {
		return fmt.Errorf("now, which is revision %d: %+v", current, got.KVs)
	}
	if err != nil {
		return err
	}
	op.Revision = rev
	got, _, err = s.Range(op)
	if errors.Is(err, kv.ErrCompacted) || err == nil && rev == 1 {
		return nil
	}
	if err == nil && (len(got.KVs) != 1 || got.KVs[0].ModRevision != rev) {
		return fmt.Errorf("one key at revision %d: %+v", rev, got.KVs)
	}
	return err
}

func readEvents(s *mvcc.Store, rev kv.Revision) error {
	changes, _, err := s.EventsSince(mvcc.EventQuery{From: rev, MaxRevisions: 5, Prev: true})
	if errors.Is(err, kv.ErrCompacted) {
		return nil
	}
	for i, c := range changes {
		if i > 0 && c.Revision != changes[i-1].Revision+1 || len(c.Events) < sharedKeys {
			return fmt.Errorf("events from %d: revision %d with %d events", rev, c.Revision, len(c.Events))
		}
	}
	return err
}
