package membershipapi

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// state is the cluster and its jobs as they were at one moment. It is shared, and never written to.
type state struct {
	cluster *quoratepb.Cluster
	jobs    []*quoratepb.Job
	steady  *quoratepb.Cluster // cluster, with the time coarse for which a member has been silent: it grows by itself
}

// poller looks at the cluster for all who watch it through this server: one question to the leader per interval,
// however many they are, and none while no client watches.
type poller struct {
	options Options

	mu        sync.Mutex
	intervals map[*time.Duration]struct{} // one for each watcher
	now       *state                      // nil until the first answer
	changed   chan struct{}               // closed when now is replaced
	sooner    chan struct{}               // a watcher came with a shorter interval
	stop      context.CancelFunc          // of the goroutine; nil while no client watches
	done      chan struct{}               // closed when it has ended
}

// describeTimeout bounds one question to the leader. Watchers then see what this member knows by itself.
const describeTimeout = time.Second

func newPoller(options Options) *poller {
	return &poller{options: options, intervals: make(map[*time.Duration]struct{}), changed: make(chan struct{})}
}

// join begins to look at least that often; leave must be called.
func (p *poller) join(interval time.Duration) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intervals[&interval] = struct{}{}
	if p.stop != nil {
		select {
		case p.sooner <- struct{}{}:
		default:
		}
	} else {
		var ctx context.Context
		ctx, p.stop = context.WithCancel(context.Background())
		p.done, p.sooner = make(chan struct{}), make(chan struct{}, 1)
		run := &pollLoop{poller: p, ctx: ctx, sooner: p.sooner, done: p.done}
		go run.run()
	}
	return func() { p.leave(&interval) }
}

func (p *poller) leave(interval *time.Duration) {
	p.mu.Lock()
	delete(p.intervals, interval)
	var done chan struct{}
	if len(p.intervals) == 0 {
		p.stop()
		p.stop, p.now, done = nil, nil, p.done
	}
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

// interval is the shortest of all watchers.
func (p *poller) interval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	shortest := time.Duration(0)
	for d := range p.intervals {
		if shortest == 0 || *d < shortest {
			shortest = *d
		}
	}
	return max(shortest, minWatchInterval)
}

// look returns what is known, nil if nothing is yet, and what is closed once there is more.
func (p *poller) look() (now *state, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.changed
}

// publish shows watchers something else, unless ctx says that those who asked for it are gone.
func (p *poller) publish(ctx context.Context, now *state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	p.now = now
	close(p.changed)
	p.changed = make(chan struct{})
}

// pollLoop is the goroutine of a poller, from the first watcher's coming to the last one's going.
type pollLoop struct {
	poller *poller
	ctx    context.Context
	sooner <-chan struct{}
	done   chan struct{}

	view   membership.View // seen last
	term   consensus.Term
	answer chan description   // of the question on its way; nil if there is none
	cancel context.CancelFunc // of that question
	again  bool               // something changed since it left
	waived bool               // the answer before was not shown, for that reason
}

// description is an answer to a question.
type description struct {
	view membership.View
	term consensus.Term
	err  error
}

// run waits for whatever may show something else. The channels are taken before the state is looked at, so that no
// change falls between.
func (r *pollLoop) run() {
	defer close(r.done)
	member, cluster := r.poller.options.Member, r.poller.options.Cluster
	due := time.NewTimer(r.poller.interval())
	defer due.Stop()
	for act := r.refresh; ; {
		leader, config, jobs := member.LeaderChanged(), cluster.ConfigChanged(), cluster.JobsChanged()
		act()
		select {
		case <-r.ctx.Done():
			r.forget()
			return
		case <-leader:
			act = r.leaderChanged
		case <-config:
			act = r.refresh
		case <-jobs:
			act = r.refresh // a job that is done, say, is shown with the configuration that it led to
		case d := <-r.answer:
			act = func() { r.answered(&d) }
			due.Reset(r.poller.interval())
		case <-r.sooner:
			act = func() { due.Reset(min(r.poller.interval(), describeTimeout)) }
		case <-due.C:
			act = r.poll
			due.Reset(r.poller.interval())
		}
	}
}

// refresh asks how things are. An answer that is on its way may be too old.
func (r *pollLoop) refresh() {
	if r.answer != nil {
		r.again = true
		return
	}
	r.poll()
}

// poll asks the leader unless a question is on its way. Without a leader this member's own knowledge has to do.
func (r *pollLoop) poll() {
	switch {
	case r.answer != nil:
	case r.poller.options.Member.Leader() == consensus.NoMember:
		r.local()
	default:
		r.ask()
	}
}

// leaderChanged forgets what was asked of another leader. That there is none is shown at once.
func (r *pollLoop) leaderChanged() {
	r.forget()
	r.poll()
}

func (r *pollLoop) ask() {
	ctx, cancel := context.WithTimeout(r.ctx, describeTimeout)
	answer := make(chan description, 1)
	r.answer, r.cancel = answer, cancel
	cluster := r.poller.options.Cluster
	go func() {
		view, term, err := cluster.DescribeCluster(ctx)
		answer <- description{view, term, err}
	}()
}

func (r *pollLoop) forget() {
	if r.cancel != nil {
		r.cancel()
	}
	r.answer, r.cancel, r.again = nil, nil, false
}

// answered shows an answer. One that something has overtaken is not shown, if the one before it was.
func (r *pollLoop) answered(d *description) {
	again := r.again
	r.forget()
	r.waived = again && !r.waived
	switch {
	case r.waived:
	case d.err != nil:
		r.local()
	default:
		r.view, r.term = d.view, d.term
		r.show(membership.Told(r.poller.options.Cluster.Jobs(), &r.view))
	}
	if again {
		r.poll()
	}
}

// local shows what this member knows by itself.
func (r *pollLoop) local() {
	r.view, r.term = localView(&r.poller.options)
	r.show(r.poller.options.Cluster.Jobs())
}

// show publishes the last view with the jobs of now.
func (r *pollLoop) show(jobs []membership.Job) {
	options := &r.poller.options
	now := &state{cluster: clusterMessage(options, &r.view, r.term, jobs), jobs: jobMessages(jobs)}
	now.steady = proto.CloneOf(now.cluster)
	for _, m := range now.steady.Members {
		m.SilentMs = coarse(m.SilentMs)
	}
	r.poller.publish(r.ctx, now)
}

// coarse rounds down for how long a member was silent, to longer units the longer it is, so that a dead member does not make
// an event twice a second for ever.
func coarse(ms int64) int64 {
	const second, minute = 1_000, 60_000
	switch {
	case ms < 10*second:
		return ms - ms%second
	case ms < minute:
		return ms - ms%(10*second)
	}
	return ms - ms%minute
}
