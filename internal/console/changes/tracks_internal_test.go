package changes

import (
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// Ensure that no more jobs are followed than can run and wait, of which those that were looked at last stay, and that nothing is
// kept of members that a job does not bring nearer.
func TestTracks_observe_bounded(t *testing.T) {
	var all tracks
	begin := time.UnixMilli(1_000_000)
	cluster := &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 1, Name: "m1"}, {Id: 4, Name: "m4"}}}
	for i := range 10 * maxTracks {
		all.observe(begin.Add(time.Duration(i)*time.Millisecond), cluster, &quoratepb.Job{Id: uint64(i + 1), State: "running",
			Newcomers: []uint64{4}})
	}
	if len(all.of) != maxTracks || all.of[10*maxTracks] == nil || all.of[1] != nil {
		t.Errorf("%d jobs are followed, want the last %d", len(all.of), maxTracks)
	}
	if few := movers(cluster, &quoratepb.Job{Newcomers: []uint64{4}}); len(few.Members) != 1 || few.Members[0].Id != 4 {
		t.Errorf("kept of the cluster: %v, want m4 alone", few)
	}
}

// Ensure that a page of a job and the list of those that have ended say the same of how long it took.
func TestViewOf_took(t *testing.T) {
	job := &quoratepb.Job{Id: 7, State: "done", StartedMs: 1_000_000, UpdatedMs: 1_013_240, EndedMs: 1_013_240, Spec: &quoratepb.ChangeSpec{}}
	at := func(ms int64) *page.Request { return &page.Request{Now: time.UnixMilli(ms)} }
	k := &known{cluster: &quoratepb.Cluster{}, names: wording.Names{}}
	one, listed := (&changes{}).viewOf(at(1_020_000), k, job), endedOf(at(0), k, job)
	if one.Took != "13.2 s" || listed.Took != one.Took {
		t.Errorf("the page says %s, the list %s", one.Took, listed.Took)
	}
	job.State, job.EndedMs = "running", 0
	if one := (&changes{}).viewOf(at(1_013_640), k, job); one.Took != "14 s" {
		t.Errorf("of one that runs: %s", one.Took)
	}
}
