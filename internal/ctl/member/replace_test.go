package member_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// played is a stream of a job that ends well.
func (f *fakeCluster) played() []*quoratepb.Event {
	return []*quoratepb.Event{stateOf(f.jobEvent("running", "join", 0)), f.jobEvent("running", "start", 1_000),
		f.jobEvent("running", "swap", 9_000), f.jobEvent("done", "swap", 12_000)}
}

const replaceText = `queued
[1/3] join
[2/3] start
start it on its machine: quorate --name m4 --join http://10.0.4.1:2380 --listen-peer-urls http://10.0.4.9:2380 ` +
	`--initial-advertise-peer-urls http://10.0.4.9:2380, with your flags for data, clients and TLS
[3/3] swap
done in 12 s · configuration 44.7.1 · may be switched off: m2
`

func TestRun_memberReplace(t *testing.T) {
	f := startCluster(t)
	f.streams = []fakeStream{{events: f.played()}}
	args := []string{"member", "replace", "m2", "--name", "m4", "--peer-urls", "http://10.0.4.9:2380", "--yes"}
	got := f.run(t, args...)
	same(t, "lines", got.Out, planText[1:]+replaceText)
	if got.Status != 0 || got.Err != "" {
		t.Errorf("got status %d, %q", got.Status, got.Err)
	}
	got = f.run(t, append(args, "-o", "yaml")...)
	if got.Status != 0 || !strings.Contains(got.Out, "\nstate: done\n") || !strings.Contains(got.Err, "[2/3] start\n") {
		t.Errorf("as YAML: got status %d, %q, %q; want the job, and its progress beside it", got.Status, got.Out, got.Err)
	}
}

// Ensure that a job draws one block in place on a terminal, and that what is to be copied stays above it.
func TestRun_memberReplace_terminal(t *testing.T) {
	f := startCluster(t)
	f.streams = []fakeStream{{events: f.played()}}
	got := ctltest.Run(t, t.Context(), command.Streams{Environ: []string{"QUORATE_ENDPOINTS=" + f.address}, Terminal: true}, "",
		"member", "replace", "m2", "--name", "m4", "--peer-urls", "http://10.0.4.9:2380", "--yes")
	frames := strings.Split(got.Out, "\x1b[4A")
	last := strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(frames[len(frames)-1])
	for _, part := range []string{"replace job 3f2a · done in 12 s\n[1/3] join   done in ", "\n[3/3] swap   done in ",
		"\ndone in 12 s · configuration 44.7.1"} {
		if !strings.Contains(last, part) {
			t.Errorf("the last frame lacks %q:\n%s", part, last)
		}
	}
	if !strings.Contains(got.Out, "start it on its machine: quorate --name m4 --join http://10.0.4.1:2380") {
		t.Errorf("the command to start m4 is missing:\n%s", got.Out)
	}
}
