package ship_test

import (
	"errors"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

// settle lets the shipper do all that it asks for, but for checkpoints if they wait.
func (w *world) settle(checkpoints bool) {
	var waiting []running
	for range 20 {
		w.tick(200)
		w.look()
		for i := 0; i < len(w.running); i++ {
			if !checkpoints && w.running[i].op.Kind == ship.Checkpoint {
				waiting = append(waiting, w.running[i])
				w.running = append(w.running[:i], w.running[i+1:]...)
				i--
			}
		}
		for len(w.running) > 0 {
			w.finish()
			w.look()
		}
	}
	w.running = waiting
}

// Ensure that other recipients get a new base at once; that until it is there nothing is called restorable, and yet each state is
// reached by a reader with both identities; that there is no gap; and that no file of the base is one that the former recipients can read.
func TestShipper_recipients(t *testing.T) {
	for name, written := range map[string]int{"a base alone": 7, "segments": 7, "segments, and nothing written": 0} {
		for _, first := range []string{"in the clear", "encrypted"} {
			w := &world{t: t, rng: rand.New(rand.NewSource(5)), place: map[string][]byte{}, times: map[string]int64{}, hours: 1,
				now: 1_790_000_000_000, calm: true, remembers: true,
				config: ship.Config{Cluster: cluster, Member: 3, SealBytes: 1000, SealAfter: 300, BaseEvery: 1 << 40, HeldBytes: 1 << 20}}
			if first == "encrypted" {
				w.relock()
			}
			w.write(10)
			w.start()
			w.settle(true)
			if name != "a base alone" {
				w.write(5)
				w.give(5)
				w.settle(true)
			}
			before := consensus.Index(len(w.history))
			w.relock()
			w.write(written)
			w.start()
			w.give(100)
			w.settle(false)
			p := w.shipper.Progress()
			if p.Restorable.Index != 0 || p.Gaps > 0 || p.Lost || len(w.running) != 1 || w.given != len(w.history) {
				t.Fatalf("%s %s: %+v, %d operations wait", name, first, p, len(w.running))
			}
			for at := before; at <= consensus.Index(len(w.history)); at++ {
				w.restores(backup.Head{Point: w.named(at, w.lock.Set()), Moment: backup.Moment{Revision: w.revision(at)}})
			}
			w.settle(true)
			last := consensus.Index(len(w.history))
			if p := w.shipper.Progress(); p.Restorable.Index != last {
				t.Fatalf("%s %s: %+v", name, first, p)
			}
			plan, err := w.catalog().Plan(backup.Target{}, func(backup.Hash) bool { return false })
			if err != nil || plan.Base.Set != w.lock.Set() || plan.End.Index != last || w.catalog().Forks() > 0 {
				t.Errorf("%s %s: %+v, %v, %d forks", name, first, plan, err, w.catalog().Forks())
			}
			w.apart()
		}
	}
}

// Ensure that an encrypted object whose name is taken by damage gets another name, and says the same.
func TestShipper_sealedTaken(t *testing.T) {
	w := &world{t: t, rng: rand.New(rand.NewSource(5)), place: map[string][]byte{}, times: map[string]int64{}, hours: 1,
		now: 1_790_000_000_000, calm: true, remembers: true,
		config: ship.Config{Cluster: cluster, Member: 3, SealBytes: 1000, SealAfter: 300, BaseEvery: 1 << 40, HeldBytes: 1 << 20}}
	w.relock()
	w.write(4)
	w.start()
	w.settle(true)
	w.write(3)
	w.give(3)
	w.tick(1000)
	spoilt := 0
	for _, op := range w.shipper.Take() {
		if _, err := backup.ParseSegment(op.Name); err == nil {
			w.place[op.Name] = []byte("damage")
			spoilt++
		}
		w.running = append(w.running, running{op, w.shipper})
	}
	w.settle(true)
	if p := w.shipper.Progress(); spoilt == 0 || p.Restorable.Index != 7 {
		t.Fatalf("%d were spoilt: %+v", spoilt, p)
	}
	w.restores(w.shipper.Progress().Restorable)
	for _, s := range w.catalog().Segments {
		if _, err := backup.Unpack(&s.SegmentName, w.place[s.String()]); len(w.place[s.String()]) > 6 && !errors.Is(err, backup.ErrSealed) {
			t.Errorf("%s is read without an identity: %v", s.String(), err)
		}
	}
}
