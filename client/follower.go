package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/stats"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

// ways lead to members.
type ways interface {
	// Endpoints are those of reads and watches; the user may change them, and so does the follower.
	Endpoints() []string
	SetEndpoints(endpoints ...string)
	// Opened lists endpoints with an open connection. Empty: the connections of reads and watches.
	Opened() []string
	// List asks at an endpoint that Opened gave, or at any other one, for the members.
	List(ctx context.Context, endpoint string, linearizable bool) (*pb.MemberListResponse, error)
	// Keep closes connections to endpoints other than these.
	Keep(endpoints []string)
}

// follower follows the cluster: it lists the members when nativeclient.Book says so, through any member that answers, and sends
// reads and watches to where the members are.
type follower struct {
	ways ways
	wake chan struct{} // something has happened that may be a reason to list
	// broken is true if a connection has ended that the book does not know of. It has no lock, because gRPC tells of that from
	// inside calls that close connections.
	broken atomic.Bool

	mu   sync.Mutex
	book *nativeclient.Book
	set  []string // endpoints of reads, as they were set last by the follower, or else given by the user
}

func newFollower() *follower { return &follower{wake: make(chan struct{}, 1)} }

// lead gives the follower the ways to members. Nothing else may be called before.
func (f *follower) lead(w ways) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ways, f.set = w, w.Endpoints()
	f.book = nativeclient.NewBook(f.set)
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// note records what a member says of the cluster.
func (f *follower) note(endpoint string, s *quoratepb.MemberStatus) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.book.NoteStatus(endpoint, s)
	if f.book.Wait(time.Now()) == 0 {
		f.signal()
	}
	return err
}

// lost notes that a connection has ended.
func (f *follower) lost() {
	f.broken.Store(true)
	f.signal()
}

// wait returns how long it is until the members are to be listed.
func (f *follower) wait() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken.Swap(false) {
		f.book.Broken()
	}
	return f.book.Wait(time.Now())
}

// toMember returns the endpoints to try for a member.
func (f *follower) toMember(id uint64) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.ToMember(id, true)
}

// endpoints returns the endpoints for writes, first and then.
func (f *follower) endpoints() (first, others []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given()
	return f.book.Writes()
}

// given takes the endpoints that the user gave meanwhile, if any. f.mu is held.
func (f *follower) given() {
	if now := f.ways.Endpoints(); !slices.Equal(now, f.set) {
		f.set = now
		if f.book.Give(now) {
			f.signal()
		}
	}
}

// deserted reports whether the user has given other endpoints, and an endpoint is not among them.
func (f *follower) deserted(endpoint string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.ways.Endpoints(), f.set) {
		return false
	}
	f.given()
	return !f.book.Given(endpoint)
}

// run lists the members until ctx ends. It begins with the first connection, or the first write.
func (f *follower) run(ctx context.Context) {
	select {
	case <-f.wake:
	case <-ctx.Done():
		return
	}
	for {
		wait := f.wait()
		if wait == 0 {
			f.refresh(ctx)
			continue
		}
		due := time.NewTimer(wait)
		select {
		case <-due.C:
		case <-f.wake:
		case <-ctx.Done():
		}
		due.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// refresh lists the members, asks who is where that is in doubt, and sends reads there.
func (f *follower) refresh(ctx context.Context) {
	f.mu.Lock()
	f.given()
	f.book.Ask(time.Now())
	all := f.book.Open()
	f.mu.Unlock()
	answer, confirmed := f.list(ctx, all)
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	if answer == nil || f.book.Listed(answer.Header.GetClusterId(), places(answer), confirmed) != nil {
		f.book.Unlisted()
		f.mu.Unlock()
		return
	}
	doubtful := f.book.Settle()
	f.mu.Unlock()
	f.examine(ctx, doubtful)
	f.mu.Lock()
	successors := f.book.Successors()
	f.mu.Unlock()
	f.examine(ctx, successors)

	f.mu.Lock()
	f.given()
	if reads := f.book.Reads(); !slices.Equal(reads, f.set) {
		f.set = reads
		f.ways.SetEndpoints(reads...)
	}
	keep := slices.Concat(f.set, f.book.Open())
	f.mu.Unlock()
	f.ways.Keep(keep)
}

func places(answer *pb.MemberListResponse) []nativeclient.Place {
	var all []nativeclient.Place
	for _, m := range answer.Members {
		all = append(all, nativeclient.Place{ID: m.ID, Endpoints: m.ClientURLs, Learner: m.IsLearner})
	}
	return all
}

// list asks for the members over connections that are open, one after the other, and then everywhere at once. It prefers an
// answer that a quorum confirms; nil: there is none.
func (f *follower) list(ctx context.Context, all []string) (answer *pb.MemberListResponse, confirmed bool) {
	ctx, cancel := context.WithTimeout(ctx, nativeclient.ListPatience)
	defer cancel()
	var second *pb.MemberListResponse
	for _, endpoint := range f.ways.Opened() {
		if answer, confirmed = f.listAt(ctx, endpoint); confirmed {
			return answer, true
		}
		if second == nil {
			second = answer
		}
	}
	type result struct {
		answer    *pb.MemberListResponse
		confirmed bool
	}
	results := make(chan result, len(all))
	for _, endpoint := range all {
		go func() {
			got, sure := f.listAt(ctx, endpoint)
			results <- result{got, sure}
		}()
	}
	for range all {
		r := <-results // listAt ends with ctx
		if r.confirmed {
			return r.answer, true
		}
		if second == nil {
			second = r.answer
		}
	}
	return second, false
}

// listAt asks one member, which asks the others, or else answers for itself.
func (f *follower) listAt(ctx context.Context, endpoint string) (answer *pb.MemberListResponse, confirmed bool) {
	for _, linearizable := range []bool{true, false} {
		asked, cancel := context.WithTimeout(ctx, nativeclient.ListPatience/4)
		answer, err := f.ways.List(asked, endpoint, linearizable)
		cancel()
		if err == nil && f.ours(answer.Header.GetClusterId()) {
			return answer, linearizable
		}
	}
	return nil, false
}

func (f *follower) ours(cluster uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.Cluster() == 0 || f.book.Cluster() == cluster
}

// examine asks who is at each endpoint.
func (f *follower) examine(ctx context.Context, endpoints []string) {
	ctx, cancel := context.WithTimeout(ctx, nativeclient.ListPatience)
	defer cancel()
	var asked sync.WaitGroup
	for _, endpoint := range endpoints {
		asked.Go(func() {
			answer, err := f.ways.List(ctx, endpoint, false)
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil || f.book.Heard(endpoint, answer.Header.GetClusterId(), answer.Header.GetMemberId()) != nil {
				f.book.Silent(endpoint)
			}
		})
	}
	asked.Wait()
}

var errNoEndpoint = errors.New("quorate: no endpoint")

// connections tells the follower when a connection begins or ends.
type connections struct{ f *follower }

// TagRPC implements stats.Handler.
func (c connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (c connections) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (c connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c connections) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.f.signal()
	case *stats.ConnEnd:
		c.f.lost()
	}
}
