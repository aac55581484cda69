package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// sight is the cluster and its jobs as they were at one moment. It is shared, and never written to.
type sight struct {
	cluster *quoratepb.Cluster
	jobs    []*quoratepb.Job
	still   *quoratepb.Cluster // cluster, but for what moves by itself: how long somebody has been silent
}

// survey looks at the cluster for all who watch it through this server: one question to the leader per interval,
// however many they are, and none while nobody watches.
type survey struct {
	s *Services

	mu        sync.Mutex
	intervals map[*time.Duration]struct{} // one for each watcher
	now       *sight                      // nil until the first answer
	changed   chan struct{}               // closed when now is replaced
	hurry     chan struct{}               // a watcher came that is less patient
	stop      context.CancelFunc          // of the goroutine; nil while nobody watches
	done      chan struct{}               // closed when it has ended
}

// describePatience bounds one question to the leader. Watchers then see what this member knows by itself.
const describePatience = time.Second

func newSurvey(s *Services) *survey {
	return &survey{s: s, intervals: make(map[*time.Duration]struct{}), changed: make(chan struct{})}
}

// join begins to look at least that often; leave must be called.
func (v *survey) join(interval time.Duration) (leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.intervals[&interval] = struct{}{}
	if v.stop != nil {
		select {
		case v.hurry <- struct{}{}:
		default:
		}
	} else {
		var ctx context.Context
		ctx, v.stop = context.WithCancel(context.Background())
		v.done, v.hurry = make(chan struct{}), make(chan struct{}, 1)
		run := &surveyor{survey: v, ctx: ctx, hurry: v.hurry, done: v.done}
		go run.run()
	}
	return func() { v.leave(&interval) }
}

func (v *survey) leave(interval *time.Duration) {
	v.mu.Lock()
	delete(v.intervals, interval)
	var done chan struct{}
	if len(v.intervals) == 0 {
		v.stop()
		v.stop, v.now, done = nil, nil, v.done
	}
	v.mu.Unlock()
	if done != nil {
		<-done
	}
}

// interval is that of the least patient watcher.
func (v *survey) interval() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	shortest := time.Duration(0)
	for d := range v.intervals {
		if shortest == 0 || *d < shortest {
			shortest = *d
		}
	}
	return max(shortest, minWatchInterval)
}

// look returns what is known, nil if nothing is yet, and what is closed once there is more.
func (v *survey) look() (now *sight, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now, v.changed
}

// publish shows watchers something else, unless ctx says that those who asked for it are gone.
func (v *survey) publish(ctx context.Context, now *sight) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	v.now = now
	close(v.changed)
	v.changed = make(chan struct{})
}

// surveyor is the goroutine of a survey, from the first watcher's coming to the last one's going.
type surveyor struct {
	survey *survey
	ctx    context.Context
	hurry  <-chan struct{}
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
func (r *surveyor) run() {
	defer close(r.done)
	member, native := r.survey.s.options.Member, r.survey.s.options.Membership
	due := time.NewTimer(r.survey.interval())
	defer due.Stop()
	for act := r.refresh; ; {
		leader, config, jobs := member.LeaderChanged(), native.ConfigChanged(), native.JobsChanged()
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
			due.Reset(r.survey.interval())
		case <-r.hurry:
			act = func() { due.Reset(min(r.survey.interval(), describePatience)) }
		case <-due.C:
			act = r.poll
			due.Reset(r.survey.interval())
		}
	}
}

// refresh asks how things are. An answer that is on its way may be too old.
func (r *surveyor) refresh() {
	if r.answer != nil {
		r.again = true
		return
	}
	r.poll()
}

// poll asks the leader unless a question is on its way. Without a leader this member's own knowledge has to do.
func (r *surveyor) poll() {
	switch {
	case r.answer != nil:
	case r.survey.s.options.Member.Leader() == consensus.NoMember:
		r.local()
	default:
		r.ask()
	}
}

// leaderChanged forgets what was asked of another leader. That there is none is shown at once.
func (r *surveyor) leaderChanged() {
	r.forget()
	r.poll()
}

func (r *surveyor) ask() {
	ctx, cancel := context.WithTimeout(r.ctx, describePatience)
	answer := make(chan description, 1)
	r.answer, r.cancel = answer, cancel
	native := r.survey.s.options.Membership
	go func() {
		view, term, err := native.DescribeCluster(ctx)
		answer <- description{view, term, err}
	}()
}

func (r *surveyor) forget() {
	if r.cancel != nil {
		r.cancel()
	}
	r.answer, r.cancel, r.again = nil, nil, false
}

// answered shows an answer. One that something has overtaken is not shown, if the one before it was.
func (r *surveyor) answered(d *description) {
	again := r.again
	r.forget()
	r.waived = again && !r.waived
	switch {
	case r.waived:
	case d.err != nil:
		r.local()
	default:
		r.view, r.term = d.view, d.term
		r.show()
	}
	if again {
		r.poll()
	}
}

// local shows what this member knows by itself.
func (r *surveyor) local() {
	r.view, r.term = r.survey.s.localView()
	r.show()
}

// show publishes the last view with the jobs of now.
func (r *surveyor) show() {
	s := r.survey.s
	jobs := s.options.Membership.Jobs()
	now := &sight{cluster: clusterMessage(s.cluster, &r.view, r.term, jobs), jobs: jobMessages(jobs)}
	now.still = proto.CloneOf(now.cluster)
	for _, m := range now.still.Members {
		m.SilentMs = coarse(m.SilentMs)
	}
	r.survey.publish(r.ctx, now)
}

// coarse rounds a silence down, the more the longer it is, so that a dead member is not news twice a second for ever.
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
