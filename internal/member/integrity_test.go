package member_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/storage/engine"
)

// flipBit changes one bit of the value of a key in a store, below all checksums of the member.
func flipBit(t *testing.T, eng engine.Engine, key string) {
	t.Helper()
	it, err := eng.NewIter([]byte{engine.VersionedTable}, []byte{engine.VersionedTable + 1})
	if err != nil {
		t.Fatal(err)
	}
	batch := eng.NewBatch()
	defer batch.Close()
	found := false
	for valid := it.First(); valid; valid = it.Next() {
		if row := it.Key(); bytes.HasPrefix(row[1:], []byte(key)) {
			value := bytes.Clone(it.Value())
			value[len(value)-1] ^= 1
			batch.Set(bytes.Clone(row), value)
			found = true
		}
	}
	if err := it.Close(); err != nil || !found {
		t.Fatal(found, err)
	}
	if err := batch.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (n *node) alarms() []kv.Alarm {
	machine, release := n.Machine()
	defer release()
	return machine.Alarms()
}

func startCompared(t *testing.T, size int, pace integrity.Pace) *cluster {
	return startWith(t, size, &cluster{pace: pace})
}

const often = 50 * time.Millisecond

// One bit that differs in the store of one member is found by the next comparison of contents. That member stops serving; the
// others go on.
func TestMember_compareContents_findsOneBit(t *testing.T) {
	c := startCompared(t, 3, integrity.Pace{Contents: often})
	leader := c.leader()
	c.put(leader, "damaged")
	sick := c.others(leader)[0]
	c.await("the put", func(n *node) bool { return n.has("damaged") }, c.running()...)
	if sick.Corrupt() || len(leader.alarms()) != 0 {
		t.Fatal("corrupt before anything was done")
	}
	flipBit(t, sick.stored.Engine, "damaged")
	c.await("the alarm", func(n *node) bool { return n.marks(sick.id) }, c.running()...)
	for _, n := range c.running() {
		if n.Corrupt() != (n == sick) {
			t.Errorf("member %v says of itself %v, member %v is corrupt", n.id, n.Corrupt(), sick.id)
		}
	}
	c.put(leader, "the others go on")
	if counts := leader.IntegrityCounts(); counts.Different == 0 || counts.Compared < counts.Different {
		t.Errorf("%+v", counts)
	}
}

// Negative control: without comparisons the same bit stays unnoticed.
func TestMember_compareContents_off(t *testing.T) {
	c := startCompared(t, 3, integrity.Pace{})
	leader := c.leader()
	c.put(leader, "damaged")
	sick := c.others(leader)[0]
	c.await("the put", func(n *node) bool { return n.has("damaged") }, sick)
	flipBit(t, sick.stored.Engine, "damaged")
	for range 50 {
		c.put(leader, "more")
	}
	if sick.Corrupt() || len(leader.alarms()) != 0 || leader.IntegrityCounts().Compared != 0 {
		t.Errorf("alarms %v although nobody compares", leader.alarms())
	}
}

// A member whose store was changed while it was down is found by the chains of hashes as soon as an entry touches a changed
// key: no member reads its whole store.
func TestMember_compareChains_findsWhatEntriesMeet(t *testing.T) {
	c := startCompared(t, 3, integrity.Pace{Chains: often})
	leader := c.leader()
	c.put(leader, "damaged")
	sick := c.others(leader)[0]
	c.await("the put", func(n *node) bool { return n.has("damaged") }, sick)
	if err := sick.stored.Engine.Flush(); err != nil { // else only the log may hold the put yet
		t.Fatal(err)
	}
	sick.stop()
	data, err := datadir.Open(sick.data())
	if err != nil {
		t.Fatal(err)
	}
	flipBit(t, data.Engine, "damaged")
	if err := errors.Join(data.Engine.Flush(), data.Close()); err != nil {
		t.Fatal(err)
	}
	sick.start()
	c.put(c.leader(), "damaged") // an entry that touches the changed key
	c.await("the alarm", func(n *node) bool { return n.marks(sick.id) && n.Corrupt() == (n == sick) }, c.running()...)
	c.put(c.leader(), "the others go on")
}

// A leader that differs from its followers marks itself corrupt, and hands leadership over.
func TestMember_compareContents_corruptLeader(t *testing.T) {
	c := startCompared(t, 3, integrity.Pace{Contents: often})
	sick := c.leader()
	c.put(sick, "damaged")
	c.await("the put", func(n *node) bool { return n.has("damaged") }, c.running()...)
	flipBit(t, sick.stored.Engine, "damaged")
	others := c.others(sick)
	c.await("another leader", func(n *node) bool {
		return n.marks(sick.id) && n.Leader() != sick.id && n.Leader() != consensus.NoMember
	}, others...)
	c.put(others[0], "the others go on")
}

// If two members differ, no majority shows which one is right: both stop serving, and writes stop.
func TestMember_compareContents_undecided(t *testing.T) {
	c := startCompared(t, 2, integrity.Pace{Contents: often})
	leader := c.leader()
	c.put(leader, "damaged")
	c.await("the put", func(n *node) bool { return n.has("damaged") }, c.running()...)
	flipBit(t, leader.stored.Engine, "damaged")
	c.await("the alarm of all", func(n *node) bool { return n.marks(consensus.NoMember) && n.Corrupt() }, c.running()...)
	result, err := leader.Propose(c.ctx, &kv.Command{Put: &kv.PutOp{Key: []byte("k")}})
	if err != nil || result.Err != kv.ErrCorrupt {
		t.Errorf("a put: %v, %v; want %v", result.Err, err, kv.ErrCorrupt)
	}
	result, err = leader.Propose(c.ctx, &kv.Command{Alarm: &kv.AlarmOp{Kind: kv.AlarmCorrupt}})
	if err != nil || result.Err != nil {
		t.Errorf("an operator disarms: %v, %v", result.Err, err)
	}
}

func (n *node) has(key string) bool {
	machine, release := n.Machine()
	defer release()
	found, err := machine.Store().Get([]byte(key))
	return err == nil && found != nil
}

func (n *node) marks(id consensus.MemberID) bool {
	return slices.Contains(n.alarms(), kv.Alarm{Member: uint64(id), Kind: kv.AlarmCorrupt})
}

// A member whose store differs by one bit learns it before it serves; the other members do not.
func TestMember_CompareAtStart(t *testing.T) {
	c := startCompared(t, 3, integrity.Pace{})
	leader := c.leader()
	c.put(leader, "damaged")
	sick := c.others(leader)[0]
	c.await("the put", func(n *node) bool { return n.has("damaged") }, c.running()...)
	for _, n := range c.running() {
		if err := n.CompareAtStart(t.Context()); err != nil {
			t.Errorf("member %v: %v", n.id, err)
		}
	}
	flipBit(t, sick.stored.Engine, "damaged")
	for _, n := range c.running() {
		if err := n.CompareAtStart(t.Context()); errors.Is(err, integrity.ErrDiffers) != (n == sick) {
			t.Errorf("member %v: got %v, member %v differs", n.id, err, sick.id)
		}
	}
}
