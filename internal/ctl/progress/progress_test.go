package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/progress"
)

var start = time.Unix(1_000, 0)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// replaceJob is a job that replaces a member by m4, at a phase, as its leader told it some seconds after its start.
func replaceJob(state, phase string, seconds int64) *quoratepb.Job {
	return &quoratepb.Job{Id: 0x3f2a, State: state, Phase: phase, Spec: &quoratepb.ChangeSpec{Kind: "replace"},
		StartedMs: 1_000_000, UpdatedMs: 1_000_000 + seconds*1000, Newcomers: []uint64{0xa4},
		Phases: []string{"join", "start", "snapshot", "catch-up", "swap", "settle"}}
}

func newcomer(lag uint64, sent, total, rate int64) *quoratepb.Cluster {
	return &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 0xa1, Name: "m1"}, {Id: 0xa4, Name: "m4", Lag: lag,
		SnapshotSentBytes: sent, SnapshotTotalBytes: total, BytesPerSecond: rate}}}
}

// Ensure that every stage of a replacement is drawn as an operator should see it.
func TestTracker_Block_replacement(t *testing.T) {
	tracker := progress.New(start, replaceJob("running", "join", 0))
	waiting := replaceJob("running", "start", 1)
	waiting.Message = "m4 has not been heard yet: start it"
	const mib = 1 << 20
	for _, step := range []struct {
		name    string
		at      float64
		cluster *quoratepb.Cluster
		job     *quoratepb.Job
		turned  bool
		want    string
	}{
		{"somebody must start it", 1, newcomer(0, 0, 0, 0), waiting, true, `
replace job 3f2a · running for 1 s
[1/6] join      done in 1 s
[2/6] start     m4 has not been heard yet: start it
[3/6] snapshot
[4/6] catch-up
[5/6] swap
[6/6] settle`},
		{"the snapshot is on its way", 31, newcomer(18_240, 2253*mib, 3174*mib, 79*mib),
			replaceJob("running", "snapshot", 31), true, `
replace job 3f2a · running for 31 s
[1/6] join      done in 1 s
[2/6] start     done in 30 s
[3/6] snapshot  m4  ██████████████░░░░░░  70 %  2.2/3.1 GiB  79.0 MiB/s  11 s left
[4/6] catch-up
[5/6] swap
[6/6] settle`},
		{"the log follows", 43, newcomer(18_240, 0, 0, 0), replaceJob("running", "catch-up", 43), true, `
replace job 3f2a · running for 43 s
[1/6] join      done in 1 s
[2/6] start     done in 30 s
[3/6] snapshot  done in 12 s
[4/6] catch-up  m4  ░░░░░░░░░░░░░░░░░░░░   0 %  lag 18240 → 18240
[5/6] swap
[6/6] settle`},
		{"half of the log is there", 45.5, newcomer(9_120, 0, 0, 0), nil, false, `
replace job 3f2a · running for 45 s
[1/6] join      done in 1 s
[2/6] start     done in 30 s
[3/6] snapshot  done in 12 s
[4/6] catch-up  m4  ██████████░░░░░░░░░░  50 %  lag 18240 → 9120  2 s left
[5/6] swap
[6/6] settle`},
		{"the end", 49, newcomer(0, 0, 0, 0), func() *quoratepb.Job {
			j := replaceJob("done", "settle", 49)
			j.EndedMs = j.UpdatedMs
			return j
		}(), true, `
replace job 3f2a · done in 49 s
[1/6] join      done in 1 s
[2/6] start     done in 30 s
[3/6] snapshot  done in 12 s
[4/6] catch-up  done in 6 s
[5/6] swap      passed
[6/6] settle    passed`},
	} {
		if turned := tracker.Observe(after(step.at), step.cluster, step.job); turned != step.turned {
			t.Errorf("%s: got turned %v, want %v", step.name, turned, step.turned)
		}
		got := strings.Join(tracker.Block(after(step.at), 0), "\n")
		if diff := cmp.Diff(step.want[1:], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// Ensure that jobs that wait, fail or are undone say why.
func TestTracker_Block_otherEnds(t *testing.T) {
	with := func(j *quoratepb.Job, message string) *quoratepb.Job {
		j.Message = message
		return j
	}
	queued := replaceJob("queued", "", 0)
	queued.StartedMs, queued.QueuePosition, queued.Phases = 0, 2, []string{"join", "swap"}
	failed := with(replaceJob("failed", "swap", 9), "m3 and m4 are silent")
	failed.Phases, failed.EndedMs = []string{"join", "swap", "settle"}, 1_009_000
	undone := with(replaceJob("running", "undo", 3), "removing m4")
	undone.Phases, undone.CancelAsked = []string{"join", "swap"}, true
	for _, tc := range []struct {
		name, lost string
		job        *quoratepb.Job
		want       string
	}{
		{"two jobs come first", "", queued, "replace job 3f2a · queued behind 2 jobs\n[1/2] join\n[2/2] swap"},
		{"it failed in the middle", "", failed, "replace job 3f2a · failed: m3 and m4 are silent\n" +
			"[1/3] join    passed\n[2/3] swap    failed\n[3/3] settle"},
		{"it is cancelled", "", undone, "replace job 3f2a · is being cancelled\n[1/2] join\n[2/2] swap\n[undo]  removing m4"},
		{"nothing is heard of it", "connection refused", queued, "replace job 3f2a · queued behind 2 jobs\n[1/2] join\n" +
			"[2/2] swap\nconnection lost (connection refused); the job goes on, trying again"},
	} {
		tracker := progress.New(start, tc.job)
		if tc.lost != "" {
			tracker.Lose(tc.lost)
		}
		if got := strings.Join(tracker.Block(after(0), 80), "\n"); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// Ensure that a tracker that comes late does not invent how long the phase took that it found, and trusts this machine's
// clock only until it hears the cluster's.
func TestTracker_Block_late(t *testing.T) {
	found := replaceJob("running", "catch-up", 40)
	tracker := progress.New(after(60), found)
	for _, step := range []struct {
		name       string
		at         float64
		job        *quoratepb.Job
		head, line string
	}{
		{"as it was found", 60, nil, "replace job 3f2a · running for 1m00s", "[4/6] catch-up"},
		{"the same again", 62, found, "replace job 3f2a · running for 1m02s", "[4/6] catch-up"},
		{"news, by a clock that is 17 s behind", 63, replaceJob("running", "swap", 45), "replace job 3f2a · running for 45 s",
			"[4/6] catch-up  done"},
	} {
		tracker.Observe(after(step.at), nil, step.job)
		if got := tracker.Block(after(step.at), 0); got[0] != step.head || got[4] != step.line {
			t.Errorf("%s: got %q, want %q and %q", step.name, got, step.head, step.line)
		}
	}
}

func TestTracker_Line(t *testing.T) {
	j := replaceJob("running", "start", 0)
	tracker := progress.New(start, j)
	j.Message = "m4 has not been heard yet"
	if got, want := tracker.Line(start), "[2/6] start: m4 has not been heard yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for message, want := range map[string]string{"": "cancelled", "by m1": "cancelled: by m1"} {
		j := replaceJob("cancelled", "undo", 5)
		j.Message = message
		if got := progress.New(start, j).Line(start); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, tc := range []struct {
		fraction float64
		want     string
	}{
		{0, "░░░░   0 %"}, {0.5, "██░░  50 %"}, {0.999, "███░  99 %"}, {1, "████ 100 %"}, {1.7, "████ 100 %"}, {-1, "░░░░   0 %"},
	} {
		if got := progress.Bar(tc.fraction, 4); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.fraction, got, tc.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, tc := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0 ms"}, {340 * time.Millisecond, "340 ms"}, {58 * time.Second, "58 s"},
		{432 * time.Second, "7m12s"}, {3*time.Hour + 5*time.Minute, "3h05m"}, {52 * time.Hour, "2d04h"},
	} {
		if got := progress.Duration(tc.d); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 2048: "2.0 KiB", 79 << 20: "79.0 MiB", 3 << 40: "3.0 TiB"} {
		if got := progress.Size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// Ensure that a tracker which comes after the end tells of phases what the cluster does, and nothing where the clocks of two
// leaders contradict each other.
func TestTracker_Block_told(t *testing.T) {
	job := replaceJob("done", "settle", 50)
	job.EndedMs = job.UpdatedMs
	for i, phase := range []string{"join", "start", "swap", "settle"} {
		job.Begun = append(job.Begun, &quoratepb.PhaseTime{Phase: phase, AtMs: 1_000_000 + []int64{0, 2000, 45_000, 44_000}[i]})
	}
	got := strings.Join(progress.New(after(90), job).Block(after(90), 0), "\n")
	want := `replace job 3f2a · done in 50 s
[1/6] join      done in 2 s
[2/6] start     done in 43 s
[3/6] snapshot  passed
[4/6] catch-up  passed
[5/6] swap      done
[6/6] settle    done in 6 s`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
