package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that a mute ends with its time, with a worse severity and with one member more, and that effects are muted with causes.
func TestSilence(t *testing.T) {
	slow := doctor.Finding{Code: doctor.DiskSlow, Severity: 3, Members: []string{"m2"}}
	effect := doctor.Finding{Code: doctor.LeaderChanges, Severity: 3, Because: doctor.DiskSlow}
	worse, more := slow, slow
	worse.Severity, more.Members = 2, []string{"m2", "m3"}
	mute := doctor.Mute{Cluster: 7, Code: doctor.DiskSlow, Severity: 3, Members: []string{"m2"}, UntilMS: 1000}
	other := mute
	other.Members = []string{"m3"}
	for _, row := range []struct {
		name    string
		found   []doctor.Finding
		mutes   []doctor.Mute
		cluster uint64
		now     int64
		loud    int
	}{
		{"as it was, with its effect", []doctor.Finding{slow, effect}, []doctor.Mute{mute}, 7, 999, 0},
		{"no mute", []doctor.Finding{slow, effect}, nil, 7, 999, 2},
		{"its time is over", []doctor.Finding{slow}, []doctor.Mute{mute}, 7, 1000, 1},
		{"another cluster", []doctor.Finding{slow}, []doctor.Mute{mute}, 8, 1, 1},
		{"it is worse", []doctor.Finding{worse}, []doctor.Mute{mute}, 7, 1, 1},
		{"it is about a member more", []doctor.Finding{more}, []doctor.Mute{mute}, 7, 1, 1},
		{"two mutes cover both", []doctor.Finding{more}, []doctor.Mute{mute, other}, 7, 1, 0},
		{"another code", []doctor.Finding{{Code: doctor.NoSync, Severity: 2, Members: []string{"m2"}}}, []doctor.Mute{mute}, 7, 1, 1},
	} {
		loud, muted := doctor.Silence(row.found, row.mutes, row.cluster, row.now)
		if len(loud) != row.loud || len(muted) != len(row.found)-row.loud {
			t.Errorf("%s: %d loud, %d muted", row.name, len(loud), len(muted))
		}
	}
	if left := doctor.Standing([]doctor.Mute{other, mute, {UntilMS: 5}}, 10); len(left) != 2 {
		t.Errorf("standing: %v", left)
	}
}

// Ensure that the log with the latest term wins over a longer one, that an epoch wins over both, and that a recovery is only
// spoken of where a majority is missing.
func TestJudgeStopped(t *testing.T) {
	dir := func(id string, epoch, term, index uint64) doctor.Stopped {
		return doctor.Stopped{Dir: "/data/" + id, Cluster: "c", ID: id, Name: id, Epoch: epoch, LastTerm: term, LastIndex: index,
			Voters: []string{"a", "b", "c"}}
	}
	removed := dir("a", 0, 9, 900)
	removed.Removed = true
	stray := dir("b", 0, 1, 1)
	stray.Cluster = "d"
	for _, row := range []struct {
		name     string
		all      []doctor.Stopped
		best     string
		majority bool
		cure     string
	}{
		{"a later term beats a longer log", []doctor.Stopped{dir("a", 0, 3, 900), dir("b", 0, 4, 10)}, "b", true, "quorate status"},
		{"a later epoch beats a later term", []doctor.Stopped{dir("a", 1, 3, 9), dir("b", 0, 4, 10)}, "a", false,
			"quorate recover --data-dir /data/a --compare /data/b --dry-run"},
		{"one of three", []doctor.Stopped{dir("c", 0, 3, 9)}, "c", false, "quorate recover --data-dir /data/c --dry-run"},
		{"a removed one counts for nothing", []doctor.Stopped{removed, dir("b", 0, 1, 1)}, "b", false,
			"quorate recover --data-dir /data/b --dry-run"},
		{"two clusters", []doctor.Stopped{dir("a", 0, 3, 9), stray}, "a", false, "quorate doctor --offline DIR"},
	} {
		got := doctor.JudgeStopped(row.all)
		if got.Ranked[0].ID != row.best || got.Majority != row.majority || got.Cure != row.cure || len(got.Sentences) == 0 {
			t.Errorf("%s: %+v", row.name, got)
		}
		slices.Reverse(row.all)
		if again := doctor.JudgeStopped(row.all); again.Ranked[0].ID != row.best && !strings.Contains(row.name, "clusters") {
			t.Errorf("%s: the order of the arguments counts: %+v", row.name, again)
		}
	}
	if got := doctor.JudgeStopped(nil); len(got.Sentences) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Ensure that a directory on a disk that is mounted read-only is given up where a majority is without it, and copied with the
// dangers named where it may be needed.
func TestJudgeStopped_readOnly(t *testing.T) {
	dir := func(id string, readOnly bool) doctor.Stopped {
		return doctor.Stopped{Dir: "/data/" + id, Cluster: "c", ID: id, Name: id, Voters: []string{"a", "b", "c"}, ReadOnly: readOnly}
	}
	const needless, needed = "The other directories are those of a majority: start these", "If the other voters run and are a majority"
	for _, row := range []struct {
		name      string
		all       []doctor.Stopped
		want, not string
	}{
		{"two others", []doctor.Stopped{dir("a", true), dir("b", false), dir("c", false)}, needless, "copy"},
		{"one other", []doctor.Stopped{dir("a", true), dir("b", false)}, needed, needless},
		{"alone", []doctor.Stopped{dir("a", true)}, needed, needless},
		{"another one of three", []doctor.Stopped{dir("a", true), dir("b", false), dir("c", true)}, needed, needless},
	} {
		said := doctor.JudgeStopped(row.all).Sentences[0]
		if !strings.Contains(said, row.want) || strings.Contains(said, row.not) || !strings.Contains(said, "quorate member replace a --name NEW --peer-urls URL)") ||
			!strings.Contains(said, "on purpose") {
			t.Errorf("%s: %s", row.name, said)
		}
		if row.want == needed && (!strings.Contains(said, "read error makes the copy worthless") ||
			!strings.Contains(said, "never start from the old one again")) {
			t.Errorf("%s: a copy without its dangers: %s", row.name, said)
		}
	}
}
