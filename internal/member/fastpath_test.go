package member_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/proposals"
)

// toldPut is a put of a key of its own, and the answer that its proposer got.
type toldPut struct {
	key      string
	revision kv.Revision
	route    proposals.Route
}

// putEverywhere puts keys through every running member at the same time, and returns the acknowledged puts.
func (c *cluster) putEverywhere(round, count int) []toldPut {
	c.t.Helper()
	_, wait := c.beginPuts(round, count)
	return wait()
}

// passed takes the passage of a request of one goroutine.
type passed struct{ proposals.Passage }

// Passed implements member.PassageTaker.
func (p *passed) Passed(by proposals.Passage) { p.Passage = by }

// beginPuts is putEverywhere while the test goes on. underway is closed once a put was acknowledged.
func (c *cluster) beginPuts(round, count int) (underway <-chan struct{}, wait func() []toldPut) {
	c.t.Helper()
	first := make(chan struct{})
	begun := sync.OnceFunc(func() { close(first) })
	var mu sync.Mutex
	var acked []toldPut
	var writing sync.WaitGroup
	for _, n := range c.running() {
		through, id := n.Member, n.id // the test may stop the node
		writing.Go(func() {
			defer begun()
			for i := range count {
				took := &passed{}
				ctx := context.WithValue(c.ctx, member.PassageKey{}, took)
				key := fmt.Sprintf("%d/%v/%d", round, id, i)
				result, err := through.Propose(ctx, &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte("v")}})
				if err = errors.Join(err, result.Err); err != nil {
					if !errors.Is(err, member.ErrStopped) && !errors.Is(err, member.ErrLeaderFailed) && !errors.Is(err, member.ErrTimeout) {
						c.t.Errorf("put through member %v: %v", id, err)
					}
					return
				}
				mu.Lock()
				told := toldPut{key: key, revision: result.Revision}
				told.route = took.Route
				acked = append(acked, told)
				mu.Unlock()
				begun()
			}
		})
	}
	return first, func() []toldPut {
		writing.Wait()
		return acked
	}
}

// checkTold looks for every acknowledged put on every running member, at the acknowledged revision.
func (c *cluster) checkTold(acked []toldPut) {
	c.t.Helper()
	revisions := map[kv.Revision]string{}
	for _, a := range acked {
		if other := revisions[a.revision]; other != "" {
			c.t.Errorf("%s and %s were told the same revision %d", a.key, other, a.revision)
		}
		revisions[a.revision] = a.key
	}
	for _, n := range c.running() {
		if err := n.ReadIndex(c.ctx); err != nil {
			c.t.Fatal(err)
		}
		machine, release := n.Machine()
		for _, a := range acked {
			got, _, err := machine.Store().Range(&kv.RangeOp{Key: []byte(a.key), Revision: a.revision})
			if err != nil || len(got.KVs) != 1 || got.KVs[0].ModRevision != a.revision || got.KVs[0].Version != 1 {
				c.t.Errorf("member %v has %v, %v; acknowledged was %+v", n.id, got.KVs, err, a)
			}
		}
		release()
	}
}

func routesOf(acked []toldPut) map[proposals.Route]int {
	routes := map[proposals.Route]int{}
	for _, a := range acked {
		routes[a.route]++
	}
	return routes
}

// Five members write at the same time and answer before the commit; the leader stops, and later all of them. Acknowledged
// writes are there at their revisions, whatever their route, and the fast path is open again each time.
func TestMember_fastPath(t *testing.T) {
	c := startFast(t, 5, offers.Always)
	var acked []toldPut
	for round := range 3 {
		won := func() bool {
			more := c.putEverywhere(round*1000+len(acked), 10)
			acked = append(acked, more...)
			return routesOf(more)[proposals.RouteFast] > 0
		}
		c.await("answers on the fast path", func(*node) bool { return won() }, c.leader())
		switch round {
		case 0: // in the middle of writes
			leader := c.leader()
			underway, wait := c.beginPuts(500, 10)
			<-underway
			leader.stop()
			acked = append(acked, wait()...)
			leader.start()
		case 1:
			stopped := slices.Clone(c.nodes)
			for _, n := range stopped {
				n.stop()
			}
			for _, n := range stopped {
				n.start()
			}
			c.together()
		}
	}
	c.checkTold(acked)
	t.Logf("%d puts by %v", len(acked), routesOf(acked))
	c.await("every record forgotten", func(n *node) bool { return n.FastCounts().Held == 0 }, c.running()...)
}

// Where the fast path is turned off, or gains nothing, nothing is offered.
func TestMember_fastPath_closed(t *testing.T) {
	for name, row := range map[string]struct {
		size int
		fast offers.Setting
	}{"never": {5, offers.Never}, "auto, and few voters": {3, offers.Auto}} {
		t.Run(name, func(t *testing.T) {
			c := startFast(t, row.size, row.fast)
			acked := c.putEverywhere(0, 10)
			c.checkTold(acked)
			if routes := routesOf(acked); len(acked) != 10*row.size || routes[proposals.RouteFast] != 0 {
				t.Errorf("%d of %d puts were acknowledged, by %v", len(acked), 10*row.size, routes)
			}
			for _, n := range c.nodes {
				if counts := n.FastCounts(); counts.Tried+counts.Accepted+counts.Answered != 0 {
					t.Errorf("member %v counts %+v", n.id, counts)
				}
			}
		})
	}
}

// A put whose caller has gone may still be decided; its member goes on, and so do the others.
func TestMember_fastPath_abandoned(t *testing.T) {
	c := startFast(t, 5, offers.Always)
	for i := range 50 {
		n := c.nodes[i%5]
		ctx, cancel := context.WithCancel(c.ctx)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = n.Propose(ctx, &kv.Command{Put: &kv.PutOp{Key: []byte("gone"), Value: []byte{byte(i)}}})
		}()
		if i%2 == 0 {
			c.put(n, fmt.Sprint("other", i))
		}
		cancel()
		<-gone
	}
	acked := c.putEverywhere(0, 5)
	if len(acked) != 25 {
		t.Errorf("only %d of 25 puts were acknowledged", len(acked))
	}
	c.checkTold(acked)
	c.await("every record forgotten", func(n *node) bool { return n.FastCounts().Held == 0 }, c.nodes...)
}
