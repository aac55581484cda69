package changes

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const (
	// maxTracks is how many jobs are followed at once: more than can run and wait.
	maxTracks = 48
	// unseen is for how long a job may go unseen before it is followed anew: how long its phases took is not known then.
	unseen = 10 * time.Second
)

// tracks follow the jobs that somebody looks at, so that a page can tell how long a phase took.
type tracks struct {
	mu sync.Mutex
	of map[uint64]*track
}

type track struct {
	tracker *progress.Tracker
	looked  time.Time
}

// observe takes in a job and a cluster as they are now, and returns how far the job is, and how long it has run.
func (t *tracks) observe(now time.Time, cluster *quoratepb.Cluster, job *quoratepb.Job) ([]progress.Step, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.of[job.Id]
	if !known || !wording.Ended(one.tracker.Job()) && now.Sub(one.looked) > unseen {
		t.makeRoom()
		one = &track{tracker: progress.New(now, job)}
		t.of[job.Id] = one
	}
	one.looked = now
	one.tracker.Observe(now, movers(cluster, job), job)
	return one.tracker.Steps(now), one.tracker.Elapsed(now)
}

// makeRoom forgets the job that was looked at first, if there are too many.
func (t *tracks) makeRoom() {
	if t.of == nil {
		t.of = map[uint64]*track{}
	}
	if len(t.of) < maxTracks {
		return
	}
	var oldest uint64
	for id, one := range t.of {
		if before, known := t.of[oldest]; !known || one.looked.Before(before.looked) {
			oldest = id
		}
	}
	delete(t.of, oldest)
}

// movers is the cluster with no other members than those that a job brings nearer: no more is kept of it.
func movers(cluster *quoratepb.Cluster, job *quoratepb.Job) *quoratepb.Cluster {
	few := &quoratepb.Cluster{}
	for _, m := range cluster.GetMembers() {
		if slices.Contains(job.GetNewcomers(), m.Id) || slices.Contains(job.GetSpec().GetPromote(), m.Id) {
			few.Members = append(few.Members, m)
		}
	}
	return few
}
