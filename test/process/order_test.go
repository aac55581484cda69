package process_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// width is how many writes a client that pipelines has under way.
const width = 8

// pipeline is what clients that pipeline saw of their writes: when each was sent and answered, by a common count.
type pipeline struct {
	mu    sync.Mutex
	count int
	seen  []piped
}

type piped struct {
	key        string
	sent, told int
	revision   int64
}

// tick returns the next number of the count.
func (p *pipeline) tick() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	return p.count
}

// put sends a write and notes it if it was answered. A write without an answer may be anywhere in the order.
func (p *pipeline) put(
	ctx context.Context, key string, send func(ctx context.Context, key string) (*clientv3.PutResponse, error),
) {
	w := piped{key: key, sent: p.tick()}
	r, err := send(ctx, key)
	if err != nil {
		return
	}
	w.told, w.revision = p.tick(), r.Header.Revision
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, w)
}

// run writes keys in the order of their numbers, each before the ones before it are answered, until the end.
func (p *pipeline) run(
	ctx context.Context, name string, send func(ctx context.Context, key string) (*clientv3.PutResponse, error),
) {
	var flying sync.WaitGroup
	room := make(chan struct{}, width)
	for i := 0; ctx.Err() == nil; i++ {
		room <- struct{}{}
		flying.Go(func() {
			p.put(ctx, fmt.Sprintf("%s/%06d", name, i), send)
			<-room
		})
	}
	flying.Wait()
}

// check demands the order that docs/membership.md promises to clients: of two writes of which one was answered before the other was
// sent, the later has the greater revision.
func (p *pipeline) check(t *testing.T) {
	t.Helper()
	told, sent := make([]*piped, p.count+1), make([]*piped, p.count+1)
	for i := range p.seen {
		w := &p.seen[i]
		told[w.told], sent[w.sent] = w, w
	}
	top := &piped{} // the one with the greatest revision among those that were answered
	for now := range p.count + 1 {
		if w := told[now]; w != nil && w.revision > top.revision {
			top = w
		}
		if w := sent[now]; w != nil && w.revision <= top.revision {
			t.Errorf("%s was sent (%d) after %s was answered (%d), and has revision %d, not above %d", w.key, w.sent, top.key,
				top.told, w.revision, top.revision)
		}
	}
}

// answered returns how many writes were answered.
func (p *pipeline) answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

// TestPipeline_acrossChanges lets two clients pipeline writes, one by etcd's calls and one by native ones, while a learner comes and
// goes, the leader dies, and the dead voter is removed: the order that was promised holds between all of these.
func TestPipeline_acrossChanges(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4, inferring)
	p := &pipeline{}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var load sync.WaitGroup
	usual, native := c.connect(c.nodes...), c.connectNative()
	defer usual.Close()
	defer native.Close()
	load.Go(func() {
		p.run(ctx, "usual", func(ctx context.Context, key string) (*clientv3.PutResponse, error) {
			return usual.Put(ctx, key, "x")
		})
	})
	load.Go(func() {
		p.run(ctx, "native", func(ctx context.Context, key string) (*clientv3.PutResponse, error) {
			return native.Put(ctx, key, "x")
		})
	})
	writes := func() {
		t.Helper()
		before := p.answered()
		until(t, "writes", func(context.Context) bool { return p.answered() >= before+4*width })
	}
	writes()
	var learner uint64
	until(t, "a learner more", func(ctx context.Context) bool {
		r, err := usual.MemberAddAsLearner(ctx, []string{"http://" + testnet.Address(t)})
		if err == nil {
			learner = r.Member.ID
		}
		return err == nil
	})
	writes()
	dismiss(t, usual, learner)
	leader := c.leads()
	if leader == nil {
		t.Fatal("nobody leads")
	}
	dead := c.memberID(leader)
	leader.kill()
	dismiss(t, usual, dead)
	writes()
	stop()
	load.Wait()
	p.check(t)
}

// dismiss removes a member.
func dismiss(t *testing.T, client *clientv3.Client, id uint64) {
	t.Helper()
	until(t, "a member less", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := client.MemberRemove(ctx, id)
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotFound) // an attempt without answer did it
	})
}

// memberID returns the id of a member that runs.
func (c *cluster) memberID(n *node) uint64 {
	c.t.Helper()
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := client.Status(ctx, n.client)
	if err != nil {
		c.t.Fatal(err)
	}
	return status.Header.MemberId
}
