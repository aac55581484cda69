package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"go.uber.org/goleak"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestWriter_write_faults writes from many goroutines while streams break, answers come late, twice or not at all, and
// sessions end. An acknowledged write happened once, a refused one never, and any other at most once.
func TestWriter_write_faults(t *testing.T) {
	for _, tc := range []struct {
		name    string
		faults  []fault
		certain bool // nothing may stay in doubt
	}{
		{name: "streams break and members cannot tell", certain: true,
			faults: []fault{breakBefore, breakAfter, againBefore, againAfter, twice, late}},
		{name: "sessions end in the open", faults: []fault{retire, twice, late}, certain: true},
		{name: "everything", faults: []fault{breakBefore, breakAfter, againBefore, againAfter, twice, late, retire,
			retireAfter, refuse}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const writers, each = 8, 60
			f := newFakeCluster()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			f.fault = chance(rand.New(rand.NewPCG(seed, 1)), 12, tc.faults...)
			w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1}, &fakeMember{cluster: f, id: 2, leader: 1},
				&fakeMember{cluster: f, id: 3, leader: 1})
			ctx := patience(t)
			var load sync.WaitGroup
			var mu sync.Mutex
			doubts, revisions := 0, map[int64]string{}
			for i := range writers {
				load.Go(func() {
					for n := range each {
						key := fmt.Sprintf("%d-%d", i, n)
						revision, err := putOne(ctx, w, key)
						var doubt *InDoubtError
						times := f.times(key)
						mu.Lock()
						switch {
						case err == nil && (times != 1 || revisions[revision] != ""):
							t.Errorf("%s: acknowledged at %d (%s), applied %d times", key, revision, revisions[revision], times)
						case errors.As(err, &doubt):
							doubts++
						case err != nil && (times != 0 || !strings.Contains(err.Error(), "refused")):
							t.Errorf("%s: failed with %v, applied %d times", key, err, times)
						}
						if err == nil {
							revisions[revision] = key
						}
						mu.Unlock()
					}
				})
			}
			load.Wait()
			for key, times := range f.executed {
				if times > 1 {
					t.Errorf("%s was applied %d times", key, times)
				}
			}
			if tc.certain && doubts > 0 {
				t.Errorf("%d writes stayed in doubt", doubts)
			}
			if len(revisions) < writers*each/2 || f.opened < 4 {
				t.Errorf("only %d writes were acknowledged, in %d sessions", len(revisions), f.opened)
			}
			if !tc.certain {
				t.Logf("%d acknowledged, %d in doubt, %d sessions", len(revisions), doubts, f.opened)
			}
		})
	}
}

// TestWriter_write_againUnderLoad asks again for a write that a member could not take, although other writes come all the time.
func TestWriter_write_againUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster()
		f.length = 1 << 20 // the others wait for no other session
		refused := make(chan struct{})
		f.fault = func(_ *fakeCluster, p *quoratepb.Proposal) fault {
			put := new(pb.PutRequest)
			if proto.Unmarshal(p.Request, put) == nil && string(put.Key) == "first" {
				select {
				case <-refused:
				default:
					close(refused)
					return againBefore
				}
			}
			return noFault
		}
		w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
		ctx := patience(t)
		answered := make(chan error, 1)
		go func() {
			_, err := putOne(ctx, w, "first")
			answered <- err
		}()
		<-refused
		for n := 0; len(answered) == 0; n++ {
			<-time.After(nativeclient.RetryPause / 10)
			if _, err := putOne(ctx, w, strconv.Itoa(n)); err != nil {
				t.Fatalf("after %d other writes: got %v, and the first one is not answered", n, err)
			}
		}
		if err := <-answered; err != nil || f.times("first") != 1 {
			t.Errorf("the first write: got %v, applied %d times", err, f.times("first"))
		}
	})
}

// TestWriter_write_doubt tells what may have happened from what has not.
func TestWriter_write_doubt(t *testing.T) {
	first := func(what ...fault) func(*fakeCluster, *quoratepb.Proposal) fault {
		return func(*fakeCluster, *quoratepb.Proposal) fault {
			if len(what) == 0 {
				return noFault
			}
			now := what[0]
			what = what[1:]
			return now
		}
	}
	for _, tc := range []struct {
		name   string
		faults []fault
		doubt  bool
		failed bool
		times  int
	}{
		{name: "lost answer", faults: []fault{breakAfter}, times: 1},
		{name: "lost request", faults: []fault{breakBefore, breakBefore}, times: 1},
		{name: "the session ended before the only attempt", faults: []fault{retire}, times: 1},
		{name: "the session ended after a lost attempt", faults: []fault{breakBefore, retire}, doubt: true},
		{name: "the session ended after an attempt that was applied", faults: []fault{retireAfter}, doubt: true, times: 1},
		{name: "refused", faults: []fault{refuse}, failed: true},
		{name: "refused after a lost attempt", faults: []fault{breakAfter, refuse}, doubt: true, times: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeCluster()
			f.fault = first(tc.faults...)
			w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1}, &fakeMember{cluster: f, id: 2, leader: 1})
			_, err := putOne(patience(t), w, "k")
			var doubt *InDoubtError
			if errors.As(err, &doubt) != tc.doubt || (err != nil) != (tc.doubt || tc.failed) || f.times("k") != tc.times {
				t.Errorf("got %v, applied %d times", err, f.times("k"))
			}
			if _, err := putOne(patience(t), w, "next"); err != nil || f.times("next") != 1 {
				t.Errorf("the next write: %v, applied %d times", err, f.times("next"))
			}
		})
	}
}

func TestWriter_write_context(t *testing.T) {
	f := newFakeCluster()
	block := make(chan struct{})
	f.fault = func(_ *fakeCluster, p *quoratepb.Proposal) fault {
		<-block
		return noFault
	}
	w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := putOne(ctx, w, "k")
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
	if _, err := putOne(ctx, w, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v", err)
	}
	close(block)
	if _, err := putOne(patience(t), w, "next"); err != nil || f.times("never") != 0 || f.times("k") > 1 {
		t.Errorf("next: %v; never: %d, k: %d times", err, f.times("never"), f.times("k"))
	}
}

// TestWriter_connect prefers who knows a leader, passes over those that do not serve, and stays with one cluster.
func TestWriter_connect(t *testing.T) {
	f := newFakeCluster()
	for _, tc := range []struct {
		name    string
		members []*fakeMember
		want    error
	}{
		{name: "another server, and one of us", members: []*fakeMember{{}, {cluster: f, id: 2, leader: 2}}},
		{name: "one without a leader", members: []*fakeMember{{cluster: f, id: 1}}},
		{name: "other servers only", members: []*fakeMember{{}, {}}, want: ErrUnsupported},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := serveFake(t, tc.members...)
			if _, err := putOne(patience(t), w, tc.name); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	t.Run("a leader is known elsewhere", func(t *testing.T) {
		w := serveFake(t, &fakeMember{cluster: f, id: 1}, &fakeMember{cluster: f, id: 2, leader: 2})
		if _, err := putOne(patience(t), w, "k"); err != nil {
			t.Fatal(err)
		}
		w.members.mu.Lock()
		defer w.members.mu.Unlock()
		if w.members.book.Leader() != 2 {
			t.Errorf("the leader is %d to the client", w.members.book.Leader())
		}
	})
	t.Run("a foreign cluster", func(t *testing.T) {
		r := newFollower()
		r.lead(&fakeWays{endpoints: []string{"e"}})
		if err := r.note("e", (&fakeMember{cluster: f, id: 1}).status()); err != nil {
			t.Fatal(err)
		}
		if err := r.note("e", (&fakeMember{cluster: f, id: 1, foreign: true}).status()); !errors.Is(err, nativeclient.ErrForeign) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWriter_close(t *testing.T) {
	f := newFakeCluster()
	w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
	w.parting = time.Minute
	if _, err := putOne(patience(t), w, "k"); err != nil {
		t.Fatal(err)
	}
	w.close()
	f.mu.Lock()
	open := len(f.sessions)
	f.mu.Unlock()
	if open != 0 {
		t.Errorf("%d sessions are left", open)
	}
	if _, err := putOne(patience(t), w, "late"); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: got %v", err)
	}
	unused := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
	unused.close()
}

// TestWriter_close_doubt tells writes that had left from those that had not.
func TestWriter_close_doubt(t *testing.T) {
	f := newFakeCluster()
	left := make(chan struct{})
	f.fault = func(*fakeCluster, *quoratepb.Proposal) fault {
		select {
		case <-left:
		default:
			close(left)
		}
		return late
	}
	w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
	ended := make(chan error)
	go func() {
		_, err := putOne(patience(t), w, "k")
		ended <- err
	}()
	<-left
	w.cancel() // as if the process ended: it says no farewell
	var doubt *InDoubtError
	if err := <-ended; !errors.As(err, &doubt) {
		t.Errorf("got %v, want doubt", err)
	}
}

func TestWriter_write_tooLarge(t *testing.T) {
	f := newFakeCluster()
	w := serveFake(t, &fakeMember{cluster: f, id: 1, leader: 1})
	if _, err := putOne(patience(t), w, strings.Repeat("k", 1<<20)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
	if _, err := putOne(patience(t), w, "k"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestMayWrite(t *testing.T) {
	read := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}
	put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}}
	nest := func(op *pb.RequestOp) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Failure: []*pb.RequestOp{op}}}}
	}
	for _, tc := range []struct {
		name string
		op   *pb.RequestOp
		want bool
	}{
		{name: "read", op: read}, {name: "put", op: put, want: true},
		{name: "nested read", op: nest(read)}, {name: "nested put", op: nest(put), want: true},
	} {
		if got := mayWrite(&pb.TxnRequest{Success: []*pb.RequestOp{tc.op}}); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}
