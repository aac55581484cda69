package member_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Ensure that a stream that breaks is opened again, and that a job that ended meanwhile is seen to have ended.
func TestRun_memberJobs_streamBreaks(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	events := f.played()
	f.streams = []fakeStream{
		{events[:2], status.Error(codes.Unavailable, "stopping")},
		{nil, status.Error(codes.Unavailable, "not yet")},
		{[]*quoratepb.Event{stateOf(events[3])}, nil},
	}
	f.run(t, "member", "jobs", "watch", "3f2a").Want(t, 0, strings.Replace(replaceText, "[3/3] swap\n",
		"connection lost (stopping); the job goes on, trying again\n", 1), "")
}

// Ensure that a member that dies and comes back is found again.
func TestRun_memberJobs_memberDies(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	events := f.played()
	f.streams = []fakeStream{{events: events[:2]}}
	go func() {
		<-f.watched
		f.mu.Lock()
		f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(events[2]), events[3]}}}
		server := f.server
		f.mu.Unlock()
		server.Stop()
		f.serve(t, f.address)
	}()
	got := f.run(t, "member", "jobs", "watch", "3f2a")
	if got.Status != 0 || !strings.Contains(got.Out, "connection lost (") || !strings.HasSuffix(got.Out,
		"[3/3] swap\ndone in 12 s · configuration 44.7.1 · may be switched off: m2\n") {
		t.Errorf("got status %d, %q, %q", got.Status, got.Out, got.Err)
	}
}

// Ensure that a cluster that stays away ends the command in the end, and not the job.
func TestRun_memberJobs_gone(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	f.streams = []fakeStream{{f.played()[:1], status.Error(codes.Unavailable, "stopping")},
		{nil, status.Error(codes.Unavailable, "stopping")}}
	got := f.run(t, "member", "jobs", "watch", "3f2a", "--timeout=500ms")
	if got.Status != command.StatusUnreachable || !strings.Contains(got.Err, "job 3f2a goes on; `quorate member jobs watch 3f2a`") ||
		!strings.Contains(got.Err, "the cluster cannot be heard any more") {
		t.Errorf("got status %d, %q", got.Status, got.Err)
	}
}

// Ensure that an interrupt leaves the job alone and says how to come back.
func TestRun_memberJobs_interrupt(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	f.streams = []fakeStream{{events: f.played()[:1]}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-f.watched
		cancel()
	}()
	got := ctltest.Run(t, ctx, ctltest.At(f.address), "", "member", "jobs", "watch", "3f2a")
	if want := "job 3f2a goes on; `quorate member jobs watch 3f2a` shows it, `quorate member jobs cancel 3f2a` stops it\n"; got.
		Status != 130 || got.Err != want {
		t.Errorf("got status %d, %q; want 130, %q", got.Status, got.Err, want)
	}
}
